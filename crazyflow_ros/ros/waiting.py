"""Service callbacks that wait for the physics thread, while the executor goes on."""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import Future
from typing import TypeVar

import rclpy.task
from rclpy.callback_groups import ReentrantCallbackGroup

T = TypeVar("T")


class Waiting:
    """Lets coroutines wait for futures of another thread.

    An executor of rclpy looks at a waiting coroutine again when it starts to spin, or after it has
    served something else. So whoever spins does it until `changed()` is done.

    Attributes:
        group: For services whose callbacks wait, so that others are served meanwhile.
    """

    def __init__(self) -> None:
        self.group = ReentrantCallbackGroup()
        self._changed: rclpy.task.Future[None] = rclpy.task.Future()

    def changed(self) -> rclpy.task.Future[None]:
        """One that is done when a future that is waited for is done from now on."""
        self._changed = rclpy.task.Future()
        return self._changed

    async def result(self, future: Future[T], timeout: float) -> T:
        """Wait for a future, in the callback of a service or in another task of the executor.

        Args:
            future: Completed in another thread.
            timeout: s of wall time.

        Returns:
            Its result.

        Raises:
            TimeoutError: It was not done in time.
        """
        future.add_done_callback(lambda _: self._changed.set_result(None))
        await _Done(future, time.monotonic() + timeout)
        return future.result(0.0)


class _Done:
    """Is awaited until a future is done, or until a deadline."""

    def __init__(self, future: Future[T], deadline: float) -> None:
        self._future, self._deadline = future, deadline

    def __await__(self) -> Generator[None, None, None]:
        while not self._future.done() and time.monotonic() < self._deadline:
            yield
