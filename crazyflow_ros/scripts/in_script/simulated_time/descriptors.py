"""Waiting for file descriptors: `select` and `poll` of a script in simulated time, and asyncio.

Time runs while a thread waits in them, also for what other programs do.
"""

from __future__ import annotations

import select
import selectors
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import ref

from .kernel import LOOK, Kernel, ScriptThread, Wait, select_poll
from .locks import nanoseconds, replace

READ = select.POLLIN
_WRITE, _URGENT = select.POLLOUT, select.POLLPRI
_FAILED = select.POLLERR | select.POLLHUP
_select = select.select


class SocketInbox:
    """What a socket has received from the simulator.

    Args:
        owner: The socket.
        drone: UDP port of the drone that it is connected to; None if it is not connected.

    Attributes:
        client: Its own UDP port.
        datagrams: Data and sender.
        waits: Those who wait for more.
    """

    def __init__(self, owner: socket.socket, drone: int | None) -> None:
        self._owner = ref(owner)
        self.drone, self.client = drone, int(owner.getsockname()[1])
        self.datagrams: deque[tuple[bytes, tuple[str, int]]] = deque()
        self.waits: list[Wait] = []

    def is_of(self, descriptor: int) -> bool:
        """Whether its socket still exists, with this descriptor."""
        owner = self._owner()
        return owner is not None and owner.fileno() == descriptor


class Descriptors:
    """Waits for descriptors, some of which belong to sockets that the simulator sends to.

    Args:
        kernel: The threads.

    Attributes:
        inboxes: By descriptor.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.inboxes: dict[int, SocketInbox] = {}

    def install(self) -> None:
        """Replace Python's functions and classes."""
        kernel = self._kernel

        def select_(
            rlist: Iterable[Any],
            wlist: Iterable[Any],
            xlist: Iterable[Any],
            timeout: float | None = None,
            /,
        ) -> tuple[list[Any], list[Any], list[Any]]:
            task = kernel.task()
            if task is None or (timeout is not None and timeout < 0):
                return _select(rlist, wlist, xlist, timeout)
            masks = (READ | _FAILED, _WRITE | select.POLLERR, _URGENT)
            asked = [[(number(file), file) for file in files] for files in (rlist, wlist, xlist)]
            wanted: dict[int, int] = {}
            for files, mask in zip(asked, masks):
                for descriptor, _ in files:
                    wanted[descriptor] = wanted.get(descriptor, 0) | mask & ~_FAILED
            found = self.wait(task, wanted, self.deadline(timeout))
            invalid = any(events & select.POLLNVAL for events in found.values())
            if invalid:
                return _select(rlist, wlist, xlist, 0)  # it raises the right error
            ready = [
                [file for descriptor, file in files if found.get(descriptor, 0) & mask]
                for files, mask in zip(asked, masks)
            ]
            return ready[0], ready[1], ready[2]

        poll = _poll_class(self)
        replace(select, select=select_, poll=poll)
        replace(selectors.SelectSelector, _select=staticmethod(select_))
        replace(selectors.PollSelector, _selector_cls=poll)
        replace(selectors, DefaultSelector=selectors.PollSelector)

    def wait(
        self, task: ScriptThread, wanted: Mapping[int, int], deadline: int | None
    ) -> dict[int, int]:
        """Return the events of descriptors that are ready.

        Args:
            task: The calling thread.
            wanted: Events of `select.poll` that are waited for, by descriptor.
            deadline: When the wait ends, in simulated time.
        """
        kernel = self._kernel
        inboxes = {i: box for i, mask in wanted.items() if mask & READ and (box := self.inbox(i))}
        # Others send nothing to a socket that is connected to a drone.
        connected = {i for i, box in inboxes.items() if box.drone is not None}
        others = [(i, mask & ~READ if i in connected else mask) for i, mask in wanted.items()]
        others = [(i, mask) for i, mask in others if mask]
        while True:
            ready = _ready(others)
            for i, box in inboxes.items():
                if box.datagrams:
                    ready[i] = ready.get(i, 0) | READ
            if ready or (deadline is not None and kernel.now >= deadline):
                kernel.looks += LOOK
                return ready
            wait = Wait(task)
            for box in inboxes.values():
                box.waits.append(wait)
            kernel.listening += len(inboxes)
            try:
                kernel.block(task, wait, deadline, others)
            finally:
                kernel.listening -= len(inboxes)
                for box in inboxes.values():
                    box.waits.remove(wait)

    def inbox(self, descriptor: int) -> SocketInbox | None:
        """Return what a descriptor has received from the simulator; None if it never asked."""
        inbox = self.inboxes.get(descriptor)
        if inbox is None or inbox.is_of(descriptor):
            return inbox
        del self.inboxes[descriptor]
        return None

    def deadline(self, timeout: float | None) -> int | None:
        """Return the end of a timeout [s] that begins now."""
        return None if timeout is None else self._kernel.now + nanoseconds(timeout)

    def poll(self, wanted: Mapping[int, int], timeout: float | None) -> dict[int, int]:
        """Return the events of descriptors that are ready, after at most `timeout` [s]."""
        task = self._kernel.task()
        if task is not None:
            return self.wait(task, wanted, self.deadline(timeout))
        poll = select_poll()
        for descriptor, mask in wanted.items():
            poll.register(descriptor, mask)
        return dict(poll.poll(None if timeout is None else 1e3 * timeout))


def _ready(wanted: Iterable[tuple[int, int]]) -> dict[int, int]:
    poll = select_poll()
    for descriptor, mask in wanted:
        poll.register(descriptor, mask)
    return dict(poll.poll(0)) if wanted else {}


def number(file: Any) -> int:
    """Return the descriptor of a file."""
    return file if isinstance(file, int) else int(file.fileno())


def _poll_class(descriptors: Descriptors) -> type[Any]:
    class Poll:
        """A substitute for the objects of `select.poll`."""

        def __init__(self) -> None:
            self._wanted: dict[int, int] = {}

        def register(self, file: Any, events: int = READ | _URGENT | _WRITE, /) -> None:
            self._wanted[number(file)] = events

        def modify(self, file: Any, events: int, /) -> None:
            if number(file) not in self._wanted:
                raise FileNotFoundError(f"descriptor {number(file)} is not registered")
            self._wanted[number(file)] = events

        def unregister(self, file: Any, /) -> None:
            del self._wanted[number(file)]

        def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
            if timeout is not None and timeout >= 0:
                return list(descriptors.poll(self._wanted, timeout * 1e-3).items())
            return list(descriptors.poll(self._wanted, None).items())

    return Poll
