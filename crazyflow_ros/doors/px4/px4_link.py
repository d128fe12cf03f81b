"""The TCP port of one PX4, which connects to the simulator and speaks first."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from crazyflow_ros.doors.px4.mavlink import Message, Parser, encode
from crazyflow_ros.doors.vehicles import VehicleContext

_RECEIVED = 4096  # bytes at once, more than a PX4 sends between two frames
_UNREAD = 64 * 1024  # bytes that wait for a PX4 that does not read, hundreds of frames
_MOST_REFUSED = 64 * 1024  # bytes from a program that is no PX4
_MOST_GUESTS = 8  # connections that have not spoken yet; for a further one the oldest has to go
_PATIENCE = 10.0  # s of wall time in which a guest has to speak, and a PX4 to answer a frame


@dataclass
class _Connection:
    """A program that has connected."""

    socket: socket.socket
    parser: Parser = field(default_factory=Parser)
    since: float = field(default_factory=time.monotonic)
    """Wall time at which it has connected."""


class Px4Link:
    """Waits for a PX4 on a port, talks to it, and waits for the next one after its end.

    A program that connects is a guest until it sends a message of a PX4. It replaces a PX4 that has
    long owed the answer to a frame. For one thread.

    Args:
        context: The drone, its port, and whom to notify.
        begin: Called when a PX4 has connected.
        take: Called with each message of the PX4.
        end: Called when the PX4 is lost.

    Raises:
        OSError: The port cannot be opened.
    """

    def __init__(
        self,
        context: VehicleContext,
        begin: Callable[[], None],
        take: Callable[[Message], None],
        end: Callable[[], None],
    ) -> None:
        self._drone, self._logger = context.drone, context.logger
        self._selector = context.selector
        self._begin, self._take, self._end = begin, take, end
        address = context.address, context.port
        self._where = f"tcp://{context.address}:{context.port}"
        try:
            self._door = socket.create_server(address)
        except (OSError, OverflowError) as error:
            raise OSError(f"{self._where}: {error}") from None
        self._door.setblocking(False)
        self._selector.register(self._door, selectors.EVENT_READ, self._accept)
        self._guests: dict[socket.socket, _Connection] = {}
        self._peer: _Connection | None = None
        self._unsent, self._sequence = b"", 0
        self._owes: float | None = None  # wall time of the first frame that it has not answered

    @property
    def is_open(self) -> bool:
        """Whether a PX4 is connected."""
        return self._peer is not None

    def _accept(self, door: socket.socket) -> None:
        try:
            peer, _ = door.accept()
        except OSError:  # it has gone again
            return
        peer.setblocking(False)
        self._guests[peer] = _Connection(peer)
        self._selector.register(peer, selectors.EVENT_READ, self._receive)
        if len(self._guests) > _MOST_GUESTS:
            self._dismiss(next(iter(self._guests)), f"more than {_MOST_GUESTS} wait here")

    def dismiss_silent(self) -> None:
        """Close connections that have long sent no message of a PX4."""
        earliest = time.monotonic() - _PATIENCE
        for guest in [c.socket for c in self._guests.values() if c.since < earliest]:
            self._dismiss(guest, f"it has sent no message of a PX4 for {_PATIENCE:g} s")

    def _dismiss(self, guest: socket.socket, why: str = "") -> None:
        del self._guests[guest]
        self._selector.unregister(guest)
        guest.close()
        if why:
            self._logger.warning(f"{self._drone}: {self._where} closes a connection: {why}")

    def _receive(self, ready: socket.socket) -> None:
        """Process what a program has sent."""
        if self._peer is not None and ready is self._peer.socket:
            self._receive_from(self._peer)
        elif (guest := self._guests.get(ready)) is not None:
            messages, ended = _read(guest)
            if messages:
                self._admit(guest, messages)
            elif ended:
                self._dismiss(ready)
            elif guest.parser.refused > _MOST_REFUSED:
                self._dismiss(ready, _no_messages(guest))

    def _receive_from(self, peer: _Connection) -> None:
        messages, ended = _read(peer)
        for message in messages:
            self._owes = None
            self._take(message)
        if ended:
            self._lose(ended)
        elif peer.parser.refused > _MOST_REFUSED:
            self._lose(_no_messages(peer))

    def _admit(self, guest: _Connection, messages: list[Message]) -> None:
        """Accept a guest that has spoken as the PX4, unless there is one."""
        if self._peer is not None:
            self._receive_from(self._peer)  # it may have ended
        if self._peer is not None and self._is_late():
            self._lose(f"it has answered no frame for {_PATIENCE:g} s, and another one has come")
        if self._peer is not None:
            self._dismiss(guest.socket, "there is a PX4 already")
            return
        del self._guests[guest.socket]
        self._peer, self._unsent, self._sequence, self._owes = guest, b"", 0, None
        with suppress(OSError):
            guest.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            guest.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
        self._logger.info(f"{self._drone}: a PX4 has connected to {self._where}")
        self._begin()
        for message in messages:
            self._take(message)

    def _is_late(self) -> bool:
        return self._owes is not None and time.monotonic() - self._owes > _PATIENCE

    def send(self, *messages: Message) -> None:
        """Send messages, unless the PX4 has not yet read earlier ones."""
        if self._peer is None:
            return
        if self._owes is None:
            self._owes = time.monotonic()
        self._flush()
        if self._unsent:
            self._logger.warning(
                f"{self._drone}: PX4 does not read what it is sent: it misses readings"
            )
            return
        for message in messages:
            self._unsent += encode(message, self._sequence)
            self._sequence += 1
        self._flush()

    def _flush(self) -> None:
        if self._peer is None or not self._unsent:
            return
        try:
            self._unsent = self._unsent[self._peer.socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self._lose(str(error))

    def _lose(self, why: str) -> None:
        assert self._peer is not None
        self._selector.unregister(self._peer.socket)
        self._peer.socket.close()
        self._peer, self._unsent = None, b""
        self._logger.warning(
            f"{self._drone}: the PX4 at {self._where} is lost, and has to be started again: {why}"
        )
        self._end()

    def close(self) -> None:
        """Close the port."""
        for guest in list(self._guests):
            self._dismiss(guest)
        if self._peer is not None:
            self._peer.socket.close()
        self._door.close()
        self._peer = None


def _read(connection: _Connection) -> tuple[list[Message], str]:
    """Return the messages that have arrived, and why the connection has ended, if it has."""
    try:
        data = connection.socket.recv(_RECEIVED)
    except BlockingIOError:
        return [], ""
    except OSError as error:
        return [], str(error)
    if not data:
        return [], "it closed the connection"
    return list(connection.parser.feed(data)), ""


def _no_messages(connection: _Connection) -> str:
    return f"it sent {connection.parser.refused} bytes that are no message of a PX4"
