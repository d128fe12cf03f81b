"""The TCP connection of one PX4, which connects to the simulator."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress

from crazyflow_ros.doors.px4.mavlink import Message, Parser, encode
from crazyflow_ros.doors.vehicles import VehicleContext

_RECEIVED = 4096  # bytes at once, more than a PX4 sends between two frames
_UNREAD = 64 * 1024  # bytes that wait for a PX4 that does not read, hundreds of frames
_MOST_REFUSED = 64 * 1024  # bytes from a program that is no PX4


class Px4Link:
    """Waits for a PX4 on a port, talks to it, and waits for the next one when it has ended.

    For one thread.

    Args:
        context: Its port, and who has to know.
        ready: Is called with a socket that is ready.

    Raises:
        OSError: The port cannot be opened.
    """

    def __init__(self, context: VehicleContext, ready: Callable[[socket.socket], None]) -> None:
        self._drone, self._logger = context.drone, context.logger
        self._selector, self._ready = context.selector, ready
        address = context.address, context.port
        self._where = f"tcp://{context.address}:{context.port}"
        try:
            self._door = socket.create_server(address, backlog=1)
        except (OSError, OverflowError) as error:
            raise OSError(f"{self._where}: {error}") from None
        self._door.setblocking(False)
        self._selector.register(self._door, selectors.EVENT_READ, self._ready)
        self._peer: socket.socket | None = None
        self._parser, self._unsent, self._sequence = Parser(), b"", 0

    @property
    def is_open(self) -> bool:
        """Whether a PX4 is connected."""
        return self._peer is not None

    def is_at_the_door(self, ready: socket.socket) -> bool:
        """Return whether a socket that is ready is the one of a PX4 that has just come."""
        return ready is self._door

    def accept(self) -> bool:
        """Accept a PX4 that has come; return whether there is a new one.

        It waits while there is something to read from the one before, which may have ended.
        """
        if self._peer is not None and _is_readable(self._peer):
            return False
        try:
            peer, _ = self._door.accept()
        except OSError:  # it has gone again
            return False
        if self._peer is not None:
            peer.close()
            self._logger.warning(
                f"{self._drone}: {self._where} refuses a second connection: it has a PX4"
            )
            return False
        with suppress(OSError):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
        peer.setblocking(False)
        self._selector.register(peer, selectors.EVENT_READ, self._ready)
        self._peer = peer
        self._parser, self._unsent, self._sequence = Parser(), b"", 0
        self._logger.info(f"{self._drone}: a PX4 has connected to {self._where}")
        return True

    def send(self, *messages: Message) -> None:
        """Send messages, unless the PX4 has not read the earlier ones yet."""
        if self._peer is None:
            return
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
            self._unsent = self._unsent[self._peer.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self._lose(str(error))

    def receive(self) -> list[Message]:
        """Return the messages that have arrived."""
        if self._peer is None:
            return []
        try:
            data = self._peer.recv(_RECEIVED)
        except BlockingIOError:
            return []
        except OSError as error:
            self._lose(str(error))
            return []
        if not data:
            self._lose("it closed the connection")
            return []
        messages = list(self._parser.feed(data))
        if self._parser.refused > _MOST_REFUSED:
            self._lose(f"it sent {self._parser.refused} bytes that are no message of a PX4")
        return messages

    def _lose(self, why: str) -> None:
        assert self._peer is not None
        self._selector.unregister(self._peer)
        self._peer.close()
        self._peer = None
        self._logger.warning(
            f"{self._drone}: the PX4 at {self._where} is lost, and has to be started again: {why}"
        )

    def close(self) -> None:
        """Close the port."""
        for one in (self._peer, self._door):
            if one is not None:
                one.close()
        self._peer = None


def _is_readable(peer: socket.socket) -> bool:
    """Return whether bytes, or the end of the connection, have arrived."""
    try:
        peer.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:  # it was reset
        pass
    return True
