"""Detection of publishers that use another message type on a command topic.

Teleoperation programs publish Twist or TwistStamped on `cmd_vel`, but a node can subscribe to a
topic with one type only. A second node therefore subscribes to Twist as soon as a publisher of it
is discovered. Any other type causes a warning, because ROS itself does not report the mismatch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import rclpy
from geometry_msgs.msg import Twist
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

_PERIOD = 0.5  # s of wall time between two checks of the ROS graph
_TWIST = "geometry_msgs/msg/Twist"
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_END_TIMEOUT = 5.0  # s


class OtherTypes:
    """Monitor of the ROS graph that subscribes to Twist and warns about other types.

    Args:
        simulator: The node that subscribes to the command topics.
        types: Expected message types by the last part of the topic's name.
        receive: Callback with the name of a drone and a Twist.
    """

    def __init__(
        self,
        simulator: SimulatorNode,
        types: Mapping[str, Any],
        receive: Callable[[str, Twist], None],
    ) -> None:
        self._simulator, self._receive = simulator, receive
        self._expected = {topic: _name_of(kind) for topic, kind in types.items()}
        self._warned: set[tuple[str, str]] = set()
        self._listener: _Listener | None = None
        self._subscriptions: dict[str, Any] = {}
        simulator.regular_calls.add(self._look, _PERIOD)

    def close(self) -> None:
        """Stop the second node."""
        if self._listener is not None:
            self._listener.close()

    def _look(self) -> None:
        graph = dict(self._simulator.get_topic_names_and_types())
        drones = {self._simulator.resolve_topic_name(name): name for name in self._simulator.drones}
        for name in self._subscriptions.keys() - {f"{drone}/cmd_vel" for drone in drones}:
            assert self._listener is not None
            self._listener.node.destroy_subscription(self._subscriptions.pop(name))
        for topic, types in graph.items():
            drone, _, last = topic.rpartition("/")
            expected = self._expected.get(last)
            if expected is None or drone not in drones:
                continue
            for other in set(types) - {expected}:
                if last == "cmd_vel" and other == _TWIST:
                    self._listen(topic, drones[drone])
                elif (topic, other) not in self._warned:
                    self._warn(topic, other, expected)

    def _listen(self, topic: str, drone: str) -> None:
        if topic in self._subscriptions:
            return
        if self._listener is None:
            self._listener = _Listener(self._simulator)
        receive = partial(self._receive, drone)
        guarded = self._simulator.door.on_message(receive, Twist, topic)
        node = self._listener.node
        self._subscriptions[topic] = node.create_subscription(Twist, topic, guarded, _QOS, raw=True)

    def _warn(self, topic: str, other: str, expected: str) -> None:
        nodes = {
            info.node_name
            for info in self._simulator.get_publishers_info_by_topic(topic)
            if info.topic_type == other
        }
        if nodes:  # otherwise the type comes from a subscriber
            self._warned.add((topic, other))
            who = ", ".join(sorted(nodes))
            self._simulator.log.warning(
                f"{topic}: {who} publishes {other}, which has no subscriber; expected {expected}"
            )


class _Listener:
    """A node with its own context and thread."""

    def __init__(self, simulator: SimulatorNode) -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=simulator.context.get_domain_id())
        self.node = Node(
            f"{simulator.get_name()}_twist",
            namespace=simulator.get_namespace(),
            context=self._context,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name="twist", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and destroy the node."""
        self._executor.shutdown(_END_TIMEOUT)
        self._context.try_shutdown()
        self._thread.join(_END_TIMEOUT)
        self.node.destroy_node()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()


def _name_of(kind: Any) -> str:
    """Return the name of a message type as used in the ROS graph."""
    package, folder, *_ = kind.__module__.split(".")
    return f"{package}/{folder}/{kind.__name__}"
