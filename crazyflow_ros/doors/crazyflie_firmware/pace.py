"""Simulated time that is not faster than wall time."""

from __future__ import annotations

import time

_STALL = 0.05  # s; what is later than that is not caught up with


class Pace:
    """Holds the control ticks of a door back to wall time, which the programs behind it live in.

    Args:
        freq: Ticks per second.
    """

    def __init__(self, freq: int) -> None:
        self._freq = freq
        self._tick, self._time = -1, 0.0  # of the anchor

    def begin(self) -> None:
        """Begin anew, because time stood still."""
        self._tick = -1

    def wait(self, tick: int) -> None:
        """Wait until wall time has reached a tick."""
        now = time.monotonic()
        due = self._time + (tick - self._tick) / self._freq
        if self._tick < 0 or abs(now - due) > _STALL:
            self._tick, self._time = tick, now
        elif due > now:
            time.sleep(due - now)
