"""The time of a recording that is played."""

from __future__ import annotations

from crazyflow_ros.ros.messages import NS

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Speeds, as multiples of the recorded speed."""

SLOW = 0.25
"""The speed for events."""

_LEAD, _TAIL = 2 * NS, NS // 2  # ns, played before and after an event


class Player:
    """Time within a recording, which runs, stands still or jumps.

    Args:
        begin_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].

    Attributes:
        time_ns: Present time [ns].
        plays: Whether time runs.
        speed: Multiple of the recorded speed.
        loops: Whether time starts again after the end.
    """

    def __init__(self, begin_ns: int, end_ns: int) -> None:
        self._begin_ns, self._end_ns = begin_ns, end_ns
        self.time_ns = begin_ns
        self.plays, self.loops = True, True
        self.speed = 1.0
        self._stop_ns: int | None = None

    def advance(self, seconds: float) -> None:
        """Let an amount of wall time pass [s]."""
        if not self.plays:
            return
        time_ns = self.time_ns + round(seconds * self.speed * NS)
        if self._stop_ns is not None and time_ns >= self._stop_ns:
            self.stop(self._stop_ns)
        elif time_ns < self._end_ns:
            self.time_ns = time_ns
        elif self.loops and self.time_ns >= self._end_ns:
            self.time_ns = self._begin_ns
        else:  # also before it begins again, so that the end is seen
            self.time_ns, self.plays = self._end_ns, self.loops

    def toggle(self) -> None:
        """Pause, or play; at the end, play from the beginning."""
        if not self.plays and self.time_ns >= self._end_ns:
            self.time_ns = self._begin_ns
        self.plays, self._stop_ns = not self.plays, None

    def seek(self, time_ns: int) -> None:
        """Go to a time [ns], and play on if it plays."""
        self.time_ns = min(max(time_ns, self._begin_ns), self._end_ns)
        self._stop_ns = None

    def stop(self, time_ns: int) -> None:
        """Go to a time [ns], and pause."""
        self.seek(time_ns)
        self.plays = False

    def play_slowly(self, time_ns: int) -> None:
        """Play from shortly before a time [ns] until shortly after it."""
        self.seek(time_ns - _LEAD)
        self.plays, self.speed = True, SLOW
        self._stop_ns = min(time_ns + _TAIL, self._end_ns)
