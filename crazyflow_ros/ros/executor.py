"""The executor of all programs."""

from __future__ import annotations

from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor


def new_executor(context: Context | None = None) -> Executor:
    """Create an EventsExecutor where there can be one, else a SingleThreadedExecutor.

    100 drones have 400 subscriptions. The EventsExecutor (Kilted and later) is woken by the
    subscription that received a message and takes 0.13 ms per message; the SingleThreadedExecutor
    checks all subscriptions, which takes 2.3 ms. Spin it from one thread: waking an EventsExecutor
    from another one can block forever.
    """
    try:
        from rclpy.experimental import EventsExecutor

        return EventsExecutor(context=context)
    # It gives sys.stderr to the faulthandler, which needs one with a file, as shells have it.
    except (ImportError, AttributeError, OSError, RuntimeError):
        return SingleThreadedExecutor(context=context)
