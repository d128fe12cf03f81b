"""The executor that handles most messages per second."""

from __future__ import annotations

from rclpy.executors import Executor, SingleThreadedExecutor


def make_executor() -> Executor:
    """An executor driven by events where rclpy has one (Kilted and later), else the usual one.

    It is spun from one thread: waking the former from another one can block for ever.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()
