"""When a flight to a goal counts as arrived. No ROS."""

from __future__ import annotations

from collections import deque

import numpy as np

NEAR, SLOW = 0.02, 0.02
"""A drone within this distance [m] and below this speed [m/s] has arrived."""
FAR = 0.2
"""One at rest within this distance [m] has, too: wind, or a controller or policy with a steady
error, keeps it from coming nearer."""
STILL, REST = 0.01, 1.0
"""A drone is at rest if it was nowhere further than this [m] from its place for so long [s]."""


class Arrival:
    """Watches a drone on its way to a goal.

    Args:
        goal: (3,) m; NaN where it does not matter.
        begin: Time at which the flight began [s].
        duration: Time that it has to take [s]; it has not arrived earlier.
    """

    def __init__(self, goal: np.ndarray, begin: float, duration: float) -> None:
        self._goal, self._end = goal, begin + duration
        self._seen: deque[tuple[float, np.ndarray]] = deque()
        self.distance = np.inf

    def look(self, time: float, pos: np.ndarray, speed: float) -> bool:
        """Return whether the drone has arrived.

        Args:
            time: Present time [s].
            pos: (3,) position [m].
            speed: m/s.
        """
        self.distance = float(np.sqrt(np.nansum((self._goal - pos) ** 2)))
        while len(self._seen) > 1 and self._seen[1][0] <= time - REST:
            self._seen.popleft()  # the first one that stays is as old as the rest has to be
        self._seen.append((time, pos))
        if time < self._end:
            return False
        rests = self._seen[0][0] <= time - REST
        rests = rests and all(np.linalg.norm(past - pos) <= STILL for _, past in self._seen)
        near = self.distance <= NEAR and speed <= SLOW
        return near or (rests and self.distance <= FAR)
