"""Requests of all simulators: those to send, to carry out and to answer."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from crazyflow_ros.hosts.words import MOST_BYTES, MOST_REQUESTS, Word
from crazyflow_ros.runtime.requests import InvalidState

CarryOut = Callable[[str, dict[str, Any]], "Future[Any] | None"]
"""Begins a request of a simulator; returns a future of its end, or None if it is already done."""

_ROOM = MOST_BYTES - 16 * 1024 * 1024  # bytes of requests in a message; the rest is for inputs


class _Request(NamedTuple):
    """A request of this simulator."""

    values: dict[str, Any]
    size: int
    """Bytes of its text."""
    future: Future[Any]
    once_here: bool
    """Whether the future is done once this simulator, instead of all, has carried it out."""


class Agenda:
    """The requests in a simulator that shares its time. Physics thread.

    Args:
        own: Name of this simulator.
        carry_out: Begins a request; it raises nothing.
    """

    def __init__(self, own: str, carry_out: CarryOut) -> None:
        self._own, self._carry_out = own, carry_out
        self._outbox: deque[_Request] = deque()
        self._said: list[_Request] = []  # in this round
        self._todo: deque[tuple[str, dict[str, Any], _Request | None]] = deque()
        self._under_way: tuple[Future[Any], _Request | None] | None = None
        self._carried_out: list[tuple[Future[Any], Future[Any]]] = []  # here, and perhaps by others

    @property
    def has_to_say(self) -> bool:
        """Whether there are requests of this simulator for the next message."""
        return bool(self._outbox)

    @property
    def has_to_do(self) -> bool:
        """Whether there are requests to carry out."""
        return bool(self._todo or self._under_way)

    def ask(self, request: dict[str, Any], future: Future[Any], *, once_here: bool) -> None:
        """Add a request, see `SharedRequests.put`."""
        size = len(json.dumps(request))
        if size <= _ROOM:
            self._outbox.append(_Request(request, size, future, once_here))
        elif not future.done():
            text = f"a request to all simulators has at most {_ROOM} bytes, got {size}"
            future.set_exception(ValueError(text))

    def say(self) -> tuple[dict[str, Any], ...]:
        """Return the requests for the next message, including those not heard yet."""
        room = _ROOM - sum(request.size for request in self._said)
        while self._outbox and len(self._said) < MOST_REQUESTS and self._outbox[0].size <= room:
            request = self._outbox.popleft()
            if request.future.set_running_or_notify_cancel():
                self._said.append(request)
                room -= request.size
        return tuple(request.values for request in self._said)

    def agree(self, words: Mapping[str, Word]) -> None:
        """Answer requests that all have carried out, and add those of all in a round."""
        self._answer()
        said, self._said = deque(self._said), []
        for name in sorted(words):
            for values in words[name].requests:
                own = said.popleft() if name == self._own else None
                self._todo.append((name, values, own))

    def carry_out(self) -> bool:
        """Carry out requests one after the other; return whether all are done."""
        while self.has_to_do:
            if self._under_way is None:
                origin, values, own = self._todo.popleft()
                begun = self._carry_out(origin, values)
                if begun is None:
                    begun = Future()
                    begun.set_result(None)
                self._under_way = begun, own
            begun, own = self._under_way
            if not begun.done():
                return False
            self._under_way = None
            if own is not None and own.once_here:
                _copy(begun, own.future)
            elif own is not None:
                self._carried_out.append((begun, own.future))
        return True

    def fail(self, reason: str) -> None:
        """Refuse the requests of this simulator that are not agreed."""
        self._answer()
        for request in (*self._said, *self._outbox):
            if not request.future.done():
                request.future.set_exception(InvalidState(reason))
        self._said.clear()
        self._outbox.clear()

    def _answer(self) -> None:
        done, self._carried_out = self._carried_out, []
        for begun, future in done:
            _copy(begun, future)


def _copy(done: Future[Any], future: Future[Any]) -> None:
    if future.done():
        return
    if error := done.exception():
        future.set_exception(error)
    else:
        future.set_result(done.result())
