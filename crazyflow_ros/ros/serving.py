"""The executor of the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.executors import ConditionReachedException, SingleThreadedExecutor, TimeoutException


class ServingExecutor(SingleThreadedExecutor):
    """Runs callbacks in one thread, and goes on with all of them after anything has failed.

    Where rclpy cannot take a request, as when there is no memory for it, its own executors never
    look at that service again.
    """

    def can_execute(self, entity: Any) -> bool:
        """Return whether to look at an entity; this thread, which asks, is not serving it."""
        group = entity.callback_group
        return group is not None and bool(group.can_execute(entity))

    def serve(self, seconds: float, ends: Callable[[], bool]) -> None:
        """Run the next callback.

        Args:
            seconds: Wall time for which to wait for it.
            ends: Tells whether not to wait any longer, after `wake`.

        Raises:
            MemoryError: There is no memory for what has arrived.
            Exception: The callback has raised it, or rclpy before.
        """
        try:
            callback, entity, _ = self.wait_for_ready_callbacks(seconds, condition=ends)
        except (TimeoutException, ConditionReachedException):
            return
        callback()
        error = callback.exception()
        if error is None:
            return
        group = getattr(entity, "callback_group", None)
        if group is not None and not group.can_execute(entity):
            group.ending_execution(entity)
        cause = error.__cause__  # of a SystemError
        raise cause if isinstance(cause, MemoryError) else error
