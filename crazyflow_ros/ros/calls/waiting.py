"""Waiting for another thread in service callbacks, without blocking the executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from typing import TypeVar

from rclpy.callback_groups import ReentrantCallbackGroup

from crazyflow_ros.runtime import InvalidState

T = TypeVar("T")

TIMEOUT = 10.0  # s of wall time; requests are carried out within one publishing period
LOADING_TIMEOUT = 300.0  # s of wall time for compilation on a busy machine
READING_TIMEOUT = 30.0  # s of wall time for reading files within the size limits
SLOWEST_TICK = 0.01  # s of wall time
_MOST_WAITING = 1000
_GRACE = 60.0  # s of wall time for a request that had begun before its timeout


class Waiting:
    """Waiting of coroutines for futures of another thread.

    An executor of rclpy resumes a waiting coroutine when it wakes up.

    Attributes:
        group: Callback group of services whose callbacks wait, so that others are served meanwhile.
        wake: Wakes the executor, in any thread; the executor's owner sets it.
    """

    def __init__(self) -> None:
        self.group = ReentrantCallbackGroup()
        self.wake: Callable[[], object] = lambda: None
        self._n_waiting = 0

    async def result(self, future: Future[T], timeout: float = TIMEOUT) -> T:
        """Wait for a future in a service callback or another task of the executor.

        Args:
            future: A future completed in another thread. After the timeout it is cancelled, so that
                it is not carried out without a caller; if it has begun by then, the wait goes on.
            timeout: Timeout [s of wall time].

        Returns:
            The result of the future.

        Raises:
            TimeoutError: The future was not done in time, and will not be done later unless the
                text says so.
            CancelledError: The future was cancelled elsewhere.
            InvalidState: Too many requests are waiting.
        """
        if self._n_waiting >= _MOST_WAITING:
            future.cancel()
            raise InvalidState(f"{_MOST_WAITING} requests are already waiting")
        self._n_waiting += 1
        try:
            return await self._result(future, timeout)
        finally:
            self._n_waiting -= 1

    async def _result(self, future: Future[T], timeout: float) -> T:
        future.add_done_callback(lambda _: self.wake())
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
            raise TimeoutError(f"not done within {timeout:g} s and cancelled") from None


class _Done:
    """Awaitable that ends when a future is done, or at a deadline."""

    def __init__(self, future: Future[T], deadline: float) -> None:
        self._future, self._deadline = future, deadline

    def __await__(self) -> Generator[None, None, None]:
        while not self._future.done() and time.monotonic() < self._deadline:
            yield
