"""Sockets of a script in simulated time.

Datagrams to and from the drones of the simulator pass through its own connection, each at its time.
All other sockets are as they were; `outside` says who waits for them, and how.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from .channel import Datagram, Reached
from .clocks import wall_sleep, wall_time
from .descriptors import READ, Descriptors, SocketInbox
from .kernel import LOOK, Kernel
from .locks import replace
from .outside import Outside

_Socket = Any  # has no types for what is called here
_C: Any = socket.socket.__mro__[1]
_real_close = socket.socket._real_close  # type: ignore[attr-defined]
_begin = socket.socket.__init__
_SHORT = 1e-3  # s of wall time between two looks of a thread that Python has not started


class Sockets:
    """The sockets of a script.

    Args:
        kernel: The threads.
        descriptors: Waits for their descriptors.
        outside: Waits for other programs.
        address: Network address of the drones.
        ports: UDP ports of the drones.
        send: Sends a datagram to a drone.
    """

    def __init__(
        self,
        kernel: Kernel,
        descriptors: Descriptors,
        outside: Outside,
        address: str,
        ports: Sequence[int],
        send: Callable[[Datagram], None],
    ) -> None:
        self._kernel, self._descriptors, self._outside = kernel, descriptors, outside
        self._host = "127.0.0.1" if address == "0.0.0.0" else address
        self._ports, self._transmit = frozenset(ports), send
        self._all: WeakSet[Any] = WeakSet()

    def receive(self, reached: Reached) -> None:
        """Take what the simulator has sent."""
        boxes = {box.client: box for box in self._descriptors.inboxes.values()}
        for datagram in reached.datagrams:
            box = boxes.get(datagram.client)
            if box is not None and (datagram.data or box.drone is not None):
                box.datagrams.append((datagram.data, (self._host, datagram.drone)))
                for wait in box.waits:
                    self._kernel.wake(wait)

    def install(self) -> None:
        """Replace the methods of Python's sockets."""

        def begin(this: _Socket, *args: Any, **kwargs: Any) -> None:
            _begin(this, *args, **kwargs)
            self._all.add(this)

        def close(this: _Socket, *args: Any) -> None:
            self._descriptors.inboxes.pop(this.fileno(), None)
            _real_close(this, *args)

        def connect(this: _Socket, address: Any, /) -> None:
            _C.connect(this, address)
            self._note_connection(this, address)

        def connect_ex(this: _Socket, address: Any, /) -> int:
            failure = int(_C.connect_ex(this, address))
            if not failure:
                self._note_connection(this, address)
            return failure

        def accept(this: _Socket) -> Any:
            self._await(this, own=True)
            return _accept(this)

        _accept = socket.socket.accept
        replace(socket.socket, __init__=begin, _real_close=close, accept=accept)
        replace(socket.socket, connect=connect, connect_ex=connect_ex)
        self._install_sending()
        for name, (flags, convert) in _RECEIVING.items():
            replace(socket.socket, **{name: self._receiving(name, flags, convert)})

    # Sending.

    def _install_sending(self) -> None:
        def send(this: _Socket, data: Any, flags: int = 0, /) -> int:
            box = self._descriptors.inbox(this.fileno())
            if box is None or box.drone is None:
                return int(_C.send(this, data, flags))
            return self._send(box, box.drone, data)

        def sendall(this: _Socket, data: Any, flags: int = 0, /) -> None:
            box = self._descriptors.inbox(this.fileno())
            if box is None or box.drone is None:
                _C.sendall(this, data, flags)
            else:
                self._send(box, box.drone, data)

        def sendto(this: _Socket, data: Any, *args: Any) -> int:
            address: Any = args[-1] if args else None
            if not self._is_drone(this, address):
                return int(_C.sendto(this, data, *args))
            box = self._descriptors.inbox(this.fileno())
            if box is None:
                if not this.getsockname()[1]:
                    this.bind(("", 0))
                box = self._descriptors.inboxes[this.fileno()] = SocketInbox(this, None)
            return self._send(box, address[1], data)

        def sendmsg(this: _Socket, buffers: Any, *args: Any) -> int:
            box = self._descriptors.inbox(this.fileno())
            if box is None or box.drone is None:
                return int(_C.sendmsg(this, buffers, *args))
            return self._send(box, box.drone, b"".join(map(bytes, buffers)))

        replace(socket.socket, send=send, sendall=sendall, sendto=sendto, sendmsg=sendmsg)

    def _send(self, box: SocketInbox, drone: int, data: Any) -> int:
        sent = bytes(data)
        self._kernel.looks += LOOK
        self._transmit(Datagram(self._kernel.now, box.client, drone, sent))
        return len(sent)

    def _note_connection(self, this: _Socket, address: Any) -> None:
        self._descriptors.inboxes.pop(this.fileno(), None)
        if self._is_drone(this, address):
            self._descriptors.inboxes[this.fileno()] = SocketInbox(this, address[1])

    def _is_drone(self, this: _Socket, address: Any) -> bool:
        if this.family != socket.AF_INET or this.type != socket.SOCK_DGRAM:
            return False
        if not isinstance(address, tuple) or address[1] not in self._ports:
            return False
        try:
            return socket.gethostbyname(address[0]) == self._host
        except OSError:
            return False

    # Receiving.

    def _receiving(self, name: str, flags: int, convert: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method of a name.

        Args:
            name: Its name.
            flags: Index of the argument with the flags.
            convert: Returns the result from data, sender and arguments.
        """
        method = getattr(_C, name)

        def receive(this: _Socket, *args: Any) -> Any:
            box = self._descriptors.inbox(this.fileno())
            if box is None:
                self._await(this)
                return method(this, *args)
            got = self._take(this, box, args[flags] if len(args) > flags else 0)
            return method(this, *args) if got is None else convert(*got, *args)

        return receive

    def _take(self, this: _Socket, box: SocketInbox, flags: int) -> tuple[bytes, Any] | None:
        """Return the next datagram of the simulator; None if another program's comes first.

        Raises:
            ConnectionRefusedError: The drone has given up the link, and sent an empty datagram.
            BlockingIOError: There is none, and the socket does not wait.
            TimeoutError: There was none in time.
        """
        timeout = 0.0 if flags & socket.MSG_DONTWAIT else this.gettimeout()
        if not box.datagrams:
            ready = self._ready(this.fileno(), box, timeout)
            if ready and not box.datagrams:
                return None
            if not ready and timeout == 0:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            if not ready:
                raise TimeoutError("timed out")
        if not box.datagrams[0][0]:  # nobody listens there any more
            box.datagrams.popleft()
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        return box.datagrams[0] if flags & socket.MSG_PEEK else box.datagrams.popleft()

    def _ready(self, descriptor: int, box: SocketInbox, timeout: float | None) -> bool:
        task = self._kernel.task()
        if task is not None:
            deadline = self._descriptors.deadline(timeout)
            return bool(self._descriptors.wait(task, {descriptor: READ}, deadline))
        end = None if timeout is None else wall_time() + timeout
        while not box.datagrams and (end is None or wall_time() < end):
            wall_sleep(_SHORT)
        return bool(box.datagrams)

    # Other programs, and other threads.

    def _await(self, this: _Socket, *, own: bool = False) -> None:
        """Wait before a method that would block.

        Args:
            this: The socket.
            own: It waits for other threads of the script, or for whoever may come.

        Raises:
            TimeoutError: Nothing happened in time.
        """
        timeout = this.gettimeout()
        if timeout == 0 or this.fileno() < 0:
            return
        deadline = self._descriptors.deadline(timeout)
        if not self._outside.await_(this.fileno(), deadline, own=own or self._is_own(this)):
            raise TimeoutError("timed out")

    def _is_own(self, this: _Socket) -> bool:
        """Whether the other end of a connection belongs to this process, too."""
        try:
            peer = this.getpeername()
        except OSError:
            return False
        return not peer or peer in {one.getsockname() for one in self._all if one.fileno() >= 0}


def _into(data: bytes, buffer: Any, size: int = 0) -> int:
    target = memoryview(buffer).cast("B")
    n = min(len(data), size or len(target))
    target[:n] = data[:n]
    return n


_RECEIVING: dict[str, tuple[int, Callable[..., Any]]] = {
    "recv": (1, lambda data, _, size, *__: data[:size]),
    "recvfrom": (1, lambda data, sender, size, *_: (data[:size], sender)),
    "recv_into": (2, lambda data, _, buffer, size=0, *__: _into(data, buffer, size)),
    "recvfrom_into": (
        2,
        lambda data, sender, buffer, size=0, *_: (_into(data, buffer, size), sender),
    ),
    "recvmsg": (2, lambda data, sender, size, *_: (data[:size], [], 0, sender)),
}
