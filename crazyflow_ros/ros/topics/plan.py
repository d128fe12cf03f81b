"""<drone>/plan: the path on which a drone follows its command, for RViz, Foxglove and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

from crazyflow_ros.flight.commander import Order
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import heading, point
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.topics.state_topics import LATCHED_QOS

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_POINTS = 60


class PlanTopics:
    """Publishes the plans of the drones when they change, while somebody listens."""

    def __init__(self, simulator: Host, is_recorded: bool) -> None:
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
        for drone, flight in zip(now.names, simulator.physics.commands.flights(now.names)):
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
    """Return whether a drone is still on its way."""
    course = order.plan.course
    return course is not None and order.seconds(time_ns) < course.end


def _path(order: Order | None, time_ns: int) -> Path:
    """Return the remaining path from now on; empty if there is none."""
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


def declare(simulator: Host, *, is_recorded: bool) -> None:
    """Add the topics."""
    PlanTopics(simulator, is_recorded)
