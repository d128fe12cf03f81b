"""Simulated time that is not faster than wall time."""

from __future__ import annotations

import time

_STALL = 0.05  # s; what is later than that is not caught up with
_CATCHES_UP = 0.75  # of a period, the shortest one


class Pace:
    """Holds the control ticks of a door back to wall time, which the programs behind it live in.

    After a stall, ticks are caught up with evenly: a firmware carries out one reading at a time.

    Args:
        freq: Ticks per second.
        period: Ticks between two control ticks.
    """

    def __init__(self, freq: int, period: int) -> None:
        self._freq, self._shortest = freq, _CATCHES_UP * period / freq
        self._tick, self._time = -1, 0.0  # of the anchor
        self._latest = 0.0

    def begin(self) -> None:
        """Begin anew, because time stood still."""
        self._tick = -1

    def wait(self, tick: int) -> None:
        """Wait until wall time has reached a tick."""
        now = time.monotonic()
        due = self._time + (tick - self._tick) / self._freq
        if self._tick < 0 or abs(now - due) > _STALL:
            self._tick, self._time = tick, now
            due = now
        due = max(due, self._latest + self._shortest)
        if due > now:
            time.sleep(due - now)
        self._latest = max(due, now)
