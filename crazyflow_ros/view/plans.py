"""The plans of drones, which overlays, map and plots share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from nav_msgs.msg import Path

from crazyflow_ros.ros.messages import nanoseconds, xyz, xyzw
from crazyflow_ros.ros.topics.state_topics import LATCHED_QOS
from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.view.follower import Follower, Inbox

_NOWHERE = np.full(4, np.nan)
_LATE_NS = 200_000_000  # a drone that has arrived is told of up to so much before the plan's end


@dataclass(frozen=True, eq=False)
class ShownPlan:
    """The path on which a drone follows its command, at the end of which it stays."""

    times: np.ndarray
    """Simulated time [s], ascending, shape (K,)."""
    poses: np.ndarray
    """Place in the map [m] and heading [rad], without jumps, shape (K, 4)."""

    def at(self, time: float) -> np.ndarray:
        """Return place and heading at a simulated time [s], shape (4,)."""
        times, poses = self.times, self.poses
        time = min(max(time, times[0]), times[-1])
        after = min(max(int(np.searchsorted(times, time)), 1), len(times) - 1)
        before, width = after - 1, times[after] - times[after - 1]
        s = (time - times[before]) / width
        near = poses[max(before - 1, 0) : after + 2]
        slopes = np.gradient(near, axis=0, edge_order=2 if len(near) > 2 else 1) / width
        low, high = slopes[before - max(before - 1, 0) :][:2]
        middle = 3 * s**2 - 2 * s**3  # a cubic between points: a line would cut corners
        bend = width * (s * (1 - s) ** 2 * low - s**2 * (1 - s) * high)
        return np.asarray((1 - middle) * poses[before] + middle * poses[after] + bend)


class Plans:
    """The latest plans of the drones; subscribes only to those that somebody uses.

    Attributes:
        under_way: The plans of drones that have not arrived yet, by name.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._users: dict[str, tuple[str, ...]] = {}
        self._drones: dict[str, str] = {}  # by topic
        # A plan is sent once, perhaps before the publisher of the topic is known here.
        self._inbox = Inbox(follower, LATCHED_QOS)
        self._resets: dict[str, int] = {}
        self._followed: dict[str, ShownPlan] = {}
        self.under_way: dict[str, ShownPlan] = {}

    def use(self, user: str, drones: tuple[str, ...]) -> None:
        """Subscribe to the plans of these drones for a user, in place of the previous drones."""
        self._users[user] = drones
        topics = {
            self._follower.topic(f"{drone}/plan"): drone
            for drone in dict.fromkeys(drone for used in self._users.values() for drone in used)
        }
        self._drones = topics
        self._inbox.subscribe(dict.fromkeys(topics, Path))
        for known in (self._followed, self.under_way):
            for drone in known.keys() - set(topics.values()):
                del known[drone]

    def update(self, resets: Mapping[str, int]) -> None:
        """Read the plans that have arrived. Call it for each frame.

        Args:
            resets: Number of resets of each drone so far. One ends the plan from before it.
        """
        for drone, count in dict(resets).items():
            if count != self._resets.get(drone, 0):
                self._resets[drone] = count
                self._followed.pop(drone, None)
                self.under_way.pop(drone, None)
        for topic, drone in self._drones.items():
            if (message := self._inbox.take(topic)) is not None:
                self._note(drone, message)

    def reference(self, drone: str, time: float) -> np.ndarray:
        """Return the position and heading that a drone should have at a time [s], shape (4,).

        NaN if unknown: the drone has no command, or one without a path, or arrived before anybody
        used its plan.
        """
        plan = self._followed.get(drone)
        return _NOWHERE if plan is None else plan.at(time)

    def _note(self, drone: str, path: Path) -> None:
        plan = _plan(path)
        if plan is not None:
            self._followed[drone] = self.under_way[drone] = plan
            return
        self.under_way.pop(drone, None)
        last = self._followed.get(drone)
        now = nanoseconds(path.header.stamp) + _LATE_NS
        if last is not None and now < last.times[-1] * 1e9:
            del self._followed[drone]  # it has not arrived: the command has ended


def _plan(path: Path) -> ShownPlan | None:
    """Return a plan; None if it is empty or not a path."""
    rows = []
    for pose in path.poses:
        yaw = float(yaw_of(xyzw(pose.pose.orientation)))
        rows.append((nanoseconds(pose.header.stamp) * 1e-9, *xyz(pose.pose.position), yaw))
    points = np.array(rows)
    if len(points) < 2 or not np.isfinite(points).all() or (np.diff(points[:, 0]) <= 0).any():
        return None
    points[:, 4] = np.unwrap(points[:, 4])
    return ShownPlan(points[:, 0], points[:, 1:])
