"""The executor of all programs."""

from __future__ import annotations

from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor


def new_executor(context: Context | None = None) -> Executor:
    """Create an EventsExecutor where rclpy has one, else a SingleThreadedExecutor.

    100 drones have 400 subscriptions. The EventsExecutor (Kilted and later) is woken by the
    subscription that received a message and takes 0.13 ms per message; the SingleThreadedExecutor
    checks all subscriptions, which takes 2.3 ms. Spin it from one thread: waking an EventsExecutor
    from another one can block forever.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)
