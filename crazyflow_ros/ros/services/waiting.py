"""Service callbacks that wait for another thread, while the executor goes on."""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import CancelledError, Future
from typing import TypeVar

import rclpy.task
from rclpy.callback_groups import ReentrantCallbackGroup

from crazyflow_ros.runtime import InvalidState

T = TypeVar("T")

TIMEOUT = 10.0  # s of wall time; requests are carried out within one period of the topics
LOADING_TIMEOUT = 300.0  # s of wall time, in which a busy machine compiles
READING_TIMEOUT = 30.0  # s of wall time, in which it reads what is not too large
SLOWEST_TICK = 0.01  # s of wall time
_MOST_WAITING = 1000
_GRACE = 60.0  # s of wall time for what has begun before it could be given up


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
        self._n_waiting = 0

    def changed(self) -> rclpy.task.Future[None]:
        """One that is done when a future that is waited for is done from now on."""
        self._changed = rclpy.task.Future()
        return self._changed

    async def result(self, future: Future[T], timeout: float = TIMEOUT) -> T:
        """Wait for a future, in the callback of a service or in another task of the executor.

        Args:
            future: Completed in another thread. It is cancelled after the timeout, so that nothing
                is done that nobody waits for any more. What has begun by then is waited for.
            timeout: s of wall time.

        Returns:
            Its result.

        Raises:
            TimeoutError: It was not done in time, and will not be done later unless the text says
                so.
            CancelledError: Somebody else has cancelled it.
            InvalidState: Too many wait already.
        """
        if self._n_waiting >= _MOST_WAITING:
            future.cancel()
            raise InvalidState(f"{_MOST_WAITING} requests wait already")
        self._n_waiting += 1
        try:
            return await self._result(future, timeout)
        finally:
            self._n_waiting -= 1

    async def _result(self, future: Future[T], timeout: float) -> T:
        future.add_done_callback(lambda _: self._changed.set_result(None))
        await _Done(future, time.monotonic() + timeout)
        if future.done():
            return future.result(0.0)
        future.cancel()
        await _Done(future, time.monotonic() + _GRACE)
        if not future.done():
            text = f"not done within {timeout + _GRACE:g} s; it has begun and may still be done"
            raise TimeoutError(text)
        try:
            return future.result(0.0)
        except CancelledError:
            raise TimeoutError(f"not done within {timeout:g} s, and given up") from None


class _Done:
    """Is awaited until a future is done, or until a deadline."""

    def __init__(self, future: Future[T], deadline: float) -> None:
        self._future, self._deadline = future, deadline

    def __await__(self) -> Generator[None, None, None]:
        while not self._future.done() and time.monotonic() < self._deadline:
            yield
