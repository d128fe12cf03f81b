"""The transforms of a running simulator."""

from __future__ import annotations

from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from crazyflow_ros.client.connection import Connection
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.service_calls import ANSWER
from crazyflow_ros.client.transform_tree import OutOfTime, Transform, TransformError, TransformTree
from crazyflow_ros.ros import published
from crazyflow_ros.ros.messages import NS, nanoseconds, xyz, xyzw

_DEPTH = 100
_DISCOVERY = 3.0  # s of wall time after which a frame counts as missing
_LATCHED = QoSProfile(depth=_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class TransformClient:
    """Transforms between the frames that the simulator publishes on /tf and /tf_static.

    It receives them only while a method of the connection waits, and keeps them for 10 s of
    simulated time.
    """

    def __init__(self, simulation: Connection) -> None:
        self._simulation, self.tree = simulation, TransformTree()
        topics = published(simulation.node, simulation.name, "tf2_msgs/msg/TFMessage")
        for topic in topics or ["/tf", "/tf_static"]:
            is_static = topic.endswith("_static")
            note = self._note_static if is_static else self._note
            qos = _LATCHED if is_static else QoSProfile(depth=_DEPTH)
            simulation.node.create_subscription(TFMessage, topic, note, qos)

    def lookup(self, target: str, source: str, time: float | None = None) -> Transform:
        """Return the pose of the frame `source` in the frame `target`.

        A point p in the source is at `body_to_world(quat, p) + pos` in the target.

        Args:
            target: Name of a frame, for example `map`.
            source: Name of a frame, for example `cf0/base_link`.
            time: Simulated time [s]; one to come is waited for. None: the latest pose known.

        Raises:
            SimulationError: There is no such frame, or nothing connects the two, or the pose at
                this time is not known any more, or has not come.
        """
        time_ns = None if time is None else round(time * NS)
        reason: TransformError = TransformError("there is no message on /tf")
        found: list[Transform] = []

        def is_there() -> bool:
            nonlocal reason
            try:
                found.append(self.tree.lookup(target, source, time_ns))
            except TransformError as error:
                reason = error
            return bool(found)

        self._simulation.spin(0.0)
        is_ahead = time_ns is not None and time_ns > self._simulation.time_ns
        try:
            self._simulation.wait(is_there, "", ANSWER if is_ahead else _DISCOVERY)
        except SimulationError:
            if isinstance(reason, OutOfTime) and is_ahead:
                self._simulation.need_time()
            raise SimulationError(str(reason)) from None
        return found[0]

    def _note(self, message: TFMessage) -> None:
        self._take(message, is_static=False)

    def _note_static(self, message: TFMessage) -> None:
        self._take(message, is_static=True)

    def _take(self, message: TFMessage, *, is_static: bool) -> None:
        for edge in message.transforms:
            try:
                add_message(self.tree, edge, is_static=is_static)
            except ValueError as error:
                self._simulation.node.get_logger().warning(f"a transform is left out: {error}")


def add_message(tree: TransformTree, edge: Any, *, is_static: bool) -> None:
    """Add a geometry_msgs/msg/TransformStamped to a tree.

    Raises:
        ValueError: It is not a pose, see `TransformTree.add`.
    """
    tree.add(
        edge.header.frame_id,
        edge.child_frame_id,
        nanoseconds(edge.header.stamp),
        xyz(edge.transform.translation),
        xyzw(edge.transform.rotation),
        is_static=is_static,
    )
