"""Answers to service calls: delayed, repeated, and after the removal of a drone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, TypeVar

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.exceptions import InvalidHandle

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.runtime import InvalidState

T = TypeVar("T")

TIMEOUT = 10.0  # s of wall time; requests are carried out within one publishing period
LOADING_TIMEOUT = 300.0  # s of wall time for compilation on a busy machine
READING_TIMEOUT = 30.0  # s of wall time for reading files within the size limits
SLOWEST_TICK = 0.01  # s of wall time
_MOST_WAITING = 1000
_GRACE = 60.0  # s of wall time for a request that had begun before its timeout
_KEPT = 10.0  # s of wall time, by which all clients have noticed that a service is gone
_DROPPED = "failed to send response"  # start of rclpy's warning
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # s of wall time before each further attempt


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


class Answers:
    """Sender that retries service responses until the middleware accepts them.

    A client may call a service as soon as it has discovered it. The service may discover the
    client's response reader later, especially on a busy machine. rmw_fastrtps waits 100 ms for that
    and then drops the response, and rclpy only warns
    (https://github.com/ros2/rmw_fastrtps/issues/842): the client would wait forever.

    Args:
        delay: Calls a function after a time [s] in the executor's thread.
        logger: Logger for responses that could not be delivered.

    Attributes:
        resent: Number of times that a response had to be sent again.
    """

    def __init__(
        self, delay: Callable[[float, Callable[[], object]], object], logger: Logger
    ) -> None:
        self._delay, self._logger = delay, logger
        self._is_sending = self._is_dropped = False
        self.resent = 0
        # A warning is the only sign that rclpy has dropped a response.
        warnings.filterwarnings("always", _DROPPED, RuntimeWarning)
        self._show_others = warnings.showwarning
        warnings.showwarning = self._show

    def ensure(self, service: Any) -> None:
        """Route the responses of a service through this sender, in the executor's thread."""
        send = service.send_response

        def attempt(response: Any, header: Any, n_attempts: int = 0) -> None:
            if self._is_accepted(send, response, header):
                return
            if n_attempts == len(_PAUSES):
                self._logger.warning(
                    f"a response of {service.service_name} is dropped: its client was not "
                    f"discovered within {sum(_PAUSES):g} s"
                )
                return
            self.resent += 1
            self._delay(_PAUSES[n_attempts], lambda: attempt(response, header, n_attempts + 1))

        service.send_response = attempt

    def _is_accepted(self, send: Callable[[Any, Any], object], response: Any, header: Any) -> bool:
        """Send a response; return False if the middleware dropped it."""
        self._is_sending, self._is_dropped = True, False
        try:
            send(response, header)
        except InvalidHandle:  # the service has been destroyed with its drone
            return True
        finally:
            self._is_sending = False
        return not self._is_dropped

    def _show(self, message: Any, *rest: Any, **options: Any) -> None:
        if self._is_sending and str(message).startswith(_DROPPED):
            self._is_dropped = True
        else:
            self._show_others(message, *rest, **options)


class Retirement:
    """Services of deleted drones, which refuse calls for a while before they are destroyed.

    A client learns with a delay that the services of a deleted drone are gone; its calls in the
    meantime would never get a response.

    Args:
        guard: Guard of the callbacks.
        delay: Calls a function after a time [s] in the executor's thread.
        destroy: Destroys a service.
    """

    def __init__(
        self,
        guard: CallbackGuard,
        delay: Callable[[float, Callable[[], object]], object],
        destroy: Callable[[Any], object],
    ) -> None:
        self._guard, self._delay, self._destroy = guard, delay, destroy
        self._retired: dict[str, dict[str, Any]] = {}  # by name: the services retired together

    def begin(self, services: Mapping[str, Any]) -> None:
        """Make services refuse all calls, and destroy them later.

        Args:
            services: The services by full name, as for `end`.
        """

        def refuse(name: str, *_: Any) -> None:
            raise InvalidState(f"{name} is gone with its drone, or by the parameter interfaces")

        def end() -> None:
            for name, service in together.items():
                if self._retired.get(name) is together:  # it was not taken back meanwhile
                    del self._retired[name]
                    self._destroy(service)

        together = {n: s for n, s in services.items() if n not in self._retired}
        for name, service in together.items():
            service.callback = self._guard.on_request(partial(refuse, name), name)
            self._retired[name] = together
        if together:
            self._delay(_KEPT, end)

    def end(self, name: str, callback: Callable[[Any, Any], Any]) -> Any:
        """Reactivate a service whose drone has been added again.

        Args:
            name: Full name of the service, as for `begin`.
            callback: Callback as for a new service.

        Returns:
            The service, or None if no service of that name is retired.
        """
        if name not in self._retired:
            return None
        service = self._retired.pop(name)[name]
        service.callback = callback
        return service
