"""Requests of other threads, which the physics thread carries out between two ticks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from crazyflow_ros.runtime.door import DoorGuard

T = TypeVar("T")


class InvalidState(RuntimeError):
    """A request that the simulation cannot carry out in its present state."""


class Response(NamedTuple):
    """Outcome of setpoints that were sent together, as texts that begin with the drone's name."""

    refused: list[str]
    """Setpoints that a drone cannot follow in its present state, and why."""
    notes: list[str]
    """Setpoints that are not followed as commanded, but for example more slowly."""


class Requests:
    """A queue that one thread serves, sleeps on, and closes.

    Args:
        note_failure: Called when an action fails with an exception that is not a refusal. The
            thread goes on.
        door: Door for whose commands the thread waits while there are no requests; or None.

    Attributes:
        stopping: Whether the thread is to end.
    """

    def __init__(
        self, note_failure: Callable[[str, Exception], None], door: DoorGuard | None = None
    ) -> None:
        self._note_failure, self._door = note_failure, door
        self._wake = threading.Condition()  # guards the four below
        self._queue: deque[tuple[Callable[[], None], Future[Any]]] = deque()
        self._serving = False
        self._closed = ""
        self.stopping = False

    # From any thread.

    def ask(self, action: Callable[[], T]) -> Future[T]:
        """Carry out `action`; the future has its result, or its exception.

        Cancelling the future drops an action that has not begun.
        """
        future: Future[T] = Future()

        def carry_out() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = action()
            except (InvalidState, ValueError) as refusal:
                future.set_exception(refusal)
            except Exception as error:
                self._note_failure("a request", error)
                future.set_exception(error)
            else:
                future.set_result(result)

        self.put(carry_out, future)
        return future

    def put(self, action: Callable[[], None], future: Future[Any]) -> None:
        """Carry out `action`, which completes the future itself."""
        with self._wake:
            if self._closed or self.stopping:
                future.set_exception(InvalidState(self._closed or "the simulation has ended"))
            else:
                self._queue.append((action, future))
                self._wake.notify_all()
        if self._door is not None:
            self._door.interrupt()

    @property
    def open(self) -> bool:
        """Whether any request is not carried out yet."""
        with self._wake:
            return bool(self._queue) or self._serving

    def stop(self) -> None:
        """Wake the thread for the last time."""
        with self._wake:
            self.stopping = True
            self._wake.notify_all()
        if self._door is not None:
            self._door.interrupt()

    # In the thread that serves.

    def pending(self) -> bool:
        """Whether there are requests, or the thread is to end."""
        return bool(self._queue) or self.stopping

    def serve(self) -> None:
        """Carry out all requests."""
        while self._queue:
            with self._wake:
                action, _ = self._queue.popleft()
                self._serving = True
            try:
                action()
            finally:
                self._serving = False

    def sleep(self, timeout: float) -> bool:
        """Wait until a request arrives; return True if the timeout [s] has expired."""
        with self._wake:
            if not (self._queue or self.stopping):
                self._wake.wait(timeout)
            return not (self._queue or self.stopping)

    def close(self, reason: str) -> None:
        """Refuse open requests, and all later ones."""
        with self._wake:
            self._closed = reason
            while self._queue:
                _, future = self._queue.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_exception(InvalidState(reason))
