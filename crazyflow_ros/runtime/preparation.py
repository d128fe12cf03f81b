"""Changes that take long to prepare: that is done beside the simulation, which flies on.

A change is tried in the physics thread. If it is not ready it is prepared in a worker and tried
again; what was prepared for a state of things that is no more is prepared anew. Changes are
prepared one after the other, each for the state of things that the one before has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.worker import Worker

T = TypeVar("T")
Ask = Callable[[Callable[[], bool]], Future[bool]]
Result = TypeVar("Result", covariant=True)


class Change(Protocol[Result]):
    """What is to be changed. Each method may refuse with ValueError or `InvalidState`."""

    def is_ready(self) -> bool:
        """Whether it can be carried out at once, as things are. Physics thread."""

    def prepare(self) -> None:
        """Make it ready, as things are. In the worker."""

    def carry_out(self) -> Result:
        """Do it, and quickly. Physics thread, directly after `is_ready`."""

    def finish(self) -> None:
        """Free what is not needed any more, which may take long. In the worker."""


class Preparation:
    """Prepares changes and has them carried out.

    Args:
        ask: Has something done in the physics thread, between two ticks.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask, self._worker = ask, Worker("preparation")
        self._lock = threading.Lock()  # guards the two below
        self._open: set[Future[Any]] = set()
        self._closed = ""

    def put(self, change: Change[T]) -> Future[T]:
        """Have a change made. From any thread.

        Returns:
            A future that can be cancelled until the change is carried out, which is then not done.
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

    def close(self, reason: str) -> None:
        """Refuse what is open, and all that comes."""
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

    def _try(self, change: Change[T], future: Future[T], *, at_once: bool = False) -> bool:
        """Carry a change out if it is ready; False if it is to be prepared. Physics thread.

        Args:
            change: To be made.
            future: Of it.
            at_once: It may overtake others, after which what is refused now may be possible.
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
        """Whether it is for the caller to complete a future."""
        with self._lock:
            mine = future in self._open
            self._open.discard(future)
        return mine and future.set_running_or_notify_cancel()

    def _fail(self, future: Future[Any], error: BaseException) -> None:
        if self._take(future) or future.running():
            future.set_exception(error)
