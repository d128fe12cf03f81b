"""Changes that take long to prepare, in a worker, while the simulation flies on.

The physics thread tries a change. If it is not ready, the worker prepares it, and the physics
thread tries again; a preparation that has become outdated is repeated. Changes are prepared one
after the other, each for the state that the previous one has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.worker import Worker

T = TypeVar("T")
Ask = Callable[[Callable[[], bool]], Future[bool]]
Result = TypeVar("Result", covariant=True)


class Change(Protocol[Result]):
    """A change. Each method may refuse with ValueError or `InvalidState`."""

    def is_ready(self) -> bool:
        """Whether the change can be carried out now. Physics thread."""

    def prepare(self) -> None:
        """Prepare the change for the present state. In the worker."""

    def carry_out(self) -> Result:
        """Carry out the change, quickly. Physics thread, directly after `is_ready`."""

    def finish(self) -> None:
        """Free objects that are no longer needed, which may take long. In the worker."""


class Preparation:
    """Prepares changes, and lets the physics thread carry them out.

    Args:
        ask: Runs a function in the physics thread, between two ticks.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask, self._worker = ask, Worker("preparation")
        self._lock = threading.Lock()  # guards the two below
        self._open: set[Future[Any]] = set()
        self._closed = ""

    def put(self, change: Change[T]) -> Future[T]:
        """Make a change. From any thread.

        Returns:
            A future; cancelling it before the change is carried out drops the change.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(InvalidState(self._closed))
                return future
            self._open.add(future)

        def prepare_if_need_be(tried: Future[bool]) -> None:
            if error := tried.exception():
                self._fail(future, error)
            elif not tried.result():
                self._worker.ask(lambda: self._prepare(change, future))

        tried = self._ask(lambda: self._try(change, future, at_once=True))
        tried.add_done_callback(prepare_if_need_be)
        return future

    def under_way(self) -> tuple[Future[Any], ...]:
        """Futures of the changes that are not made yet. From any thread."""
        with self._lock:
            return tuple(self._open)

    def close(self, reason: str) -> None:
        """Refuse open changes, and all later ones."""
        with self._lock:
            self._closed, refused = reason, tuple(self._open)
        for future in refused:
            self._fail(future, InvalidState(reason))

    def _prepare(self, change: Change[T], future: Future[T]) -> None:
        """Prepare a change until it is carried out or refused. In the worker."""
        try:
            while not future.done():
                change.prepare()
                if self._ask(lambda: self._try(change, future)).result():
                    break
        except Exception as error:
            self._fail(future, error)
        finally:
            change.finish()
            with self._lock:
                self._open.discard(future)  # of a change that was cancelled before its turn

    def _try(self, change: Change[T], future: Future[T], *, at_once: bool = False) -> bool:
        """Carry out a change if it is ready; return False if it has to be prepared. Physics thread.

        Args:
            change: The change.
            future: Its future.
            at_once: The change may overtake others. If it is refused now, it may be possible after
                them, so it is tried again.
        """
        try:
            if not (future.cancelled() or change.is_ready()):
                return False
            if self._take(future):
                future.set_result(change.carry_out())
        except (InvalidState, ValueError) as refusal:
            if at_once and not future.running() and len(self._open) > 1:
                return False
            self._fail(future, refusal)
        except Exception as error:
            self._fail(future, error)
            raise
        return True

    def _take(self, future: Future[Any]) -> bool:
        """Whether the caller is the one to complete a future."""
        with self._lock:
            mine = future in self._open
            self._open.discard(future)
        return mine and future.set_running_or_notify_cancel()

    def _fail(self, future: Future[Any], error: BaseException) -> None:
        if self._take(future) or future.running():
            future.set_exception(error)
