"""Topics for programs that draw: RViz, Foxglove and the page.

~/display/odometry and ~/display/joint_states are the swarm's topics with at most 30 messages in a
second of wall time. At twenty times real time, ~/odometry has two thousand, which slow the
simulation down, and nobody can see more than a few. ~/display/world has likewise what moves in
the world. ~/scene has the world without the drones as markers, in frames that /tf moves where
bodies move, ~/display/spawned likewise the drones that came after the start, of which a viewer has
no description, and <drone>/plan the path on which a drone follows its command.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.qos import QoSProfile, ReliabilityPolicy
from visualization_msgs.msg import MarkerArray

from crazyflow_ros.flight.commander import Order
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import heading, point
from crazyflow_ros.ros.messages.numeric_message import NumericMessage
from crazyflow_ros.ros.messages.scene_markers import markers_of
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.topics.drone_states import messages_of_all
from crazyflow_ros.ros.topics.state_topics import (
    ALL,
    LATCHED_QOS,
    Addressed,
    Delivery,
    Suits,
    of_drones,
)
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.moving_frames import MovingFrames
from crazyflow_ros.scene.shapes import VisibleShape, drone_shapes, world_shapes

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

DISPLAY = "display"
"""Namespace of the topics, below that of the node."""

_RATE = 30  # Hz of wall time
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_POINTS = 60  # of a plan
_REPEAT = 0.5  # s of wall time after which the same state is sent again, for new subscribers


class DisplayTopics:
    """Publishes the latest state, in the executor's thread.

    It computes nothing without subscribers. While the state stays the same, it is sent twice a
    second. Recordings do not contain these messages, which depend on wall time.
    """

    def __init__(self, simulator: Host) -> None:
        self._physics, self._listeners = simulator.physics, simulator.listeners
        create = self._listeners.create_publisher
        self._n_rotors = self._physics.commands.rules.n_rotors
        self._publishers = {
            f"~/{DISPLAY}/{name}": create(message.kind, f"~/{DISPLAY}/{name}", _QOS, recorded=False)
            for name, message in messages_of_all((), self._n_rotors).items()
        }
        self._arrange(())
        self._world, self._of_world = Delivery(of_drones(()), [], set()), dict[str, Any]()
        self._shown: Snapshot | None = None
        self._sent = 0.0
        self._timer = simulator.create_timer(1 / _RATE, self._send)
        self._listeners.follow(self._rest_unheard)

    def show_world(self, messages: Mapping[str, NumericMessage[Snapshot]], suits: Suits) -> None:
        """Replace the topics of what moves in the world.

        Args:
            messages: The messages by the names of their topics.
            suits: Tells which states have what they show.
        """
        before, self._of_world = self._of_world, {}
        topics = []
        for name, message in messages.items():
            topic = f"~/{DISPLAY}/{name}"
            publisher = self._listeners.create_publisher(message.kind, topic, _QOS, recorded=False)
            self._of_world[topic] = publisher
            topics.append(Addressed({topic: publisher}, message.layout([ALL]), message.values))
        self._world = Delivery(suits, topics, set(self._of_world))
        for topic in before.keys() - self._of_world.keys():
            self._listeners.remove(topic)

    def _rest_unheard(self) -> None:
        """Let the timer wake the executor only for subscribers."""
        if not any(map(self._listeners.count, [*self._publishers, *self._of_world])):
            self._timer.cancel()
        elif self._timer.is_canceled():
            self._timer.reset()

    def _send(self) -> None:
        now, snapshot = time.monotonic(), self._physics.snapshot
        if snapshot is self._shown and now < self._sent + _REPEAT:
            return
        if snapshot.names != self._drones:
            self._arrange(snapshot.names)
        self._shown, self._sent = snapshot, now
        self._world.send(snapshot)
        self._delivery.send(snapshot)

    def _arrange(self, drones: Sequence[str]) -> None:
        self._drones = drones
        topics = [
            Addressed({topic: publisher}, message.layout([ALL]), message.values)
            for (topic, publisher), message in zip(
                self._publishers.items(), messages_of_all(drones, self._n_rotors).values()
            )
        ]
        self._delivery = Delivery(of_drones(drones), topics, set(self._publishers))


class SceneTopic:
    """Publishes the scene when it has changed."""

    def __init__(self, simulator: Host) -> None:
        self._simulator = simulator
        self._publisher = simulator.create_publisher(MarkerArray, "~/scene", LATCHED_QOS)
        self._model: object = None
        self._published: MarkerArray | None = None
        simulator.regular_calls.add(self._look)

    def _look(self) -> None:
        model = self._simulator.physics.mirror.model
        if model is not self._model:
            self._model = model
            self._simulator.worker.ask(self._publish)

    def _publish(self) -> None:
        model = self._simulator.physics.mirror.model
        markers = markers_of(world_shapes(model, MovingFrames(model).of_bodies))
        if markers != self._published:  # otherwise only drones have been added or removed
            self._published = markers
            self._publisher.publish(markers)


class SpawnedTopic:
    """Publishes how the drones look that were not there at the start, when they come or go."""

    def __init__(self, simulator: Host) -> None:
        self._simulator = simulator
        self._shown: tuple[str, ...] | None = None
        self._publisher = simulator.create_publisher(
            MarkerArray, f"~/{DISPLAY}/spawned", LATCHED_QOS, recorded=False
        )
        self._looks: list[VisibleShape] | None = None  # of any of them
        simulator.for_all_drones(self._show)

    def _show(self) -> None:
        first, drones = self._simulator.parameters.drones, self._simulator.drones
        spawned = tuple(name for name in drones if name not in first)
        if spawned == self._shown:
            return
        self._shown = spawned
        model = self._simulator.physics.mirror.model
        if spawned and self._looks is None:
            self._looks = drone_shapes(model, spawned[0])
        frames = map(frame_ids.base_link, spawned)
        shapes = [replace(x, frame=frame) for frame in frames for x in self._looks or ()]
        self._publisher.publish(markers_of(shapes))


class PlanTopics:
    """Publishes the plans of the drones when they change, if they have subscribers."""

    def __init__(self, simulator: Host, *, is_recorded: bool) -> None:
        self._simulator, self._is_recorded = simulator, is_recorded
        self._published: dict[str, Order | None] = {}  # to present subscribers
        simulator.for_each_drone(self._add)
        simulator.regular_calls.add(self._look)

    def _add(self, drone: str) -> None:
        self._simulator.listeners.create_publisher(Path, f"{drone}/plan", LATCHED_QOS)

    def _look(self) -> None:
        simulator = self._simulator
        now, own = simulator.physics.snapshot, simulator.interfaces.drones
        if not own:
            return
        for drone, flight in zip(
            now.names, simulator.physics.commands.commanders.flights(now.names)
        ):
            topic = f"{drone}/plan"
            if drone not in own:
                self._published.pop(drone, None)
                continue
            if not self._is_recorded and simulator.listeners.heard(topic) is None:
                self._published.pop(drone, None)
                continue
            order = flight.order
            if order is not None and not _moves(order, now.time_ns):
                order = None
            if drone not in self._published or order is not self._published[drone]:
                self._published[drone] = order
                publisher = simulator.listeners.create_publisher(Path, topic, LATCHED_QOS)
                publisher.publish(_path(order, now.time_ns))


def _moves(order: Order, time_ns: int) -> bool:
    course = order.plan.course
    return course is not None and order.seconds(time_ns) < course.end


def _path(order: Order | None, time_ns: int) -> Path:
    path = Path()
    path.header.frame_id, path.header.stamp = frame_ids.MAP, time_of(time_ns)
    if order is None or order.plan.course is None:
        return path
    course = order.plan.course
    times = np.linspace(max(order.seconds(time_ns), 0.0), course.end, _POINTS)
    for seconds, (x, y, z, yaw) in zip(times.tolist(), course.along(times)[0].tolist()):
        pose = PoseStamped()
        pose.header.frame_id = frame_ids.MAP
        pose.header.stamp = time_of(order.begin_ns + round(seconds * 1e9))
        pose.pose.position, pose.pose.orientation = point((x, y, z)), heading(yaw)
        path.poses.append(pose)
    return path
