"""Times and durations as messages and as numbers, and the clock of timers."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Duration, Time
from rclpy.clock import Clock
from rclpy.clock_type import ClockType

NS = 1_000_000_000
"""Nanoseconds per second."""
STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""The clock of timers: rclpy's own follow the system's, and stand still when that is set back."""


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
