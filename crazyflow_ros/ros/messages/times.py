"""Conversion of times and durations between messages and numbers."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Duration, Time

NS = 1_000_000_000
"""Nanoseconds per second."""


def nanoseconds(time: Any) -> int:
    """Convert a Time or Duration to a whole number of ns."""
    return int(time.sec) * NS + int(time.nanosec)


def time_of(time_ns: int) -> Time:
    """Convert a whole number of ns to a Time."""
    seconds, nanoseconds = divmod(time_ns, NS)
    return Time(sec=seconds, nanosec=nanoseconds)


def duration_of(seconds: float) -> Duration:
    """Convert seconds to a Duration, to the nanosecond."""
    whole = int(seconds)
    return Duration(sec=whole, nanosec=round((seconds - whole) * NS))
