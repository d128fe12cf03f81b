"""Conditions under which a drone has arrived at a goal. No ROS."""

from __future__ import annotations

from collections import deque
from itertools import takewhile

import numpy as np

NEAR, SLOW = 0.02, 0.02
"""A drone within this distance [m] and below this speed [m/s] has arrived."""
FAR = 0.2
"""A drone at rest within this distance [m] has arrived, too: wind, or a controller or policy with
a steady-state error, keeps it from coming nearer."""
STILL, REST = 0.01, 1.0
"""A drone is at rest if it stayed within this distance [m] of its place for this time [s]."""
STUCK = 5.0
"""A drone that has been at rest elsewhere for this time [s] will not arrive."""


class Arrival:
    """Watches a drone on its way to a goal.

    Args:
        goal: Position (3,) [m]; NaN for coordinates that do not matter.
        begin: Time at which the flight began [s].
        duration: Minimum duration of the flight [s]; the drone does not count as arrived earlier.

    Attributes:
        end: Time at which its plan ends [s]. Until then a rest is part of the plan, or of a slow
            start.
        distance: Distance from the goal at the latest `look` [m].
        is_stuck: Whether the drone is at rest and will not move any more, wherever it is.
    """

    def __init__(self, goal: np.ndarray, begin: float, duration: float) -> None:
        self._goal, self._least = goal, begin + duration
        self._seen: deque[tuple[float, np.ndarray]] = deque()
        self.end, self.distance, self.is_stuck = self._least, np.inf, False

    def look(self, time: float, pos: np.ndarray, speed: float) -> bool:
        """Return whether the drone has arrived.

        Args:
            time: Present time [s].
            pos: Position (3,) [m].
            speed: Speed [m/s].
        """
        self.distance = float(np.sqrt(np.nansum((self._goal - pos) ** 2)))
        while len(self._seen) > 1 and self._seen[1][0] <= time - STUCK:
            self._seen.popleft()  # keep one that is as old as the longest rest
        self._seen.append((time, pos))
        if time < self._least:
            return False
        near = self.distance <= NEAR and speed <= SLOW
        if time < self.end:
            self.is_stuck = False
            return near
        here = takewhile(lambda seen: np.linalg.norm(seen[1] - pos) <= STILL, reversed(self._seen))
        since = min(seen[0] for seen in here)
        self.is_stuck = since <= time - STUCK
        return near or (since <= time - REST and self.distance <= FAR)
