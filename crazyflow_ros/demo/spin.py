"""Execution of callbacks with many messages per second."""

from __future__ import annotations

import time

from rclpy.executors import Executor, SingleThreadedExecutor


def make_executor() -> Executor:
    """Create an EventsExecutor where rclpy has one (Kilted and later), else the usual executor.

    Spin it from one thread: waking an EventsExecutor from another one can block forever.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin_for(executor: Executor, seconds: float) -> None:
    """Run callbacks for a time, even under constant load.

    The executor's own functions with a timeout return only once the queue is empty.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=left)
