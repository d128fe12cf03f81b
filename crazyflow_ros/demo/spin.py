"""Running callbacks where many messages arrive per second."""

from __future__ import annotations

import time

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


def spin_for(executor: Executor, seconds: float) -> None:
    """Run callbacks for a time, even if there are always more of them.

    The executor's own functions with a timeout do not return before they have caught up.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=left)
