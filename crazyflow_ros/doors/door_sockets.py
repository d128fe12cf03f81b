"""The sockets of a door, which are served while time waits."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

Address: TypeAlias = tuple[str, int]
"""Host and port."""
FIRST_PORT, LAST_PORT = 1024, 65535
"""Ports that a door may open."""
_LOOK = 0.1  # s of wall time after which waiting is interrupted for a moment
_MOST_WAKES = 4096


def last_port(setting: str, first: int, drones: int, step: int = 1) -> int:
    """Return the port of the last drone.

    Args:
        setting: Name of the setting that gives the port of the first one.
        first: That port.
        drones: Number of drones.
        step: Ports from one drone to the next.

    Raises:
        ValueError: There are not enough ports.
    """
    last = first + step * (drones - 1)
    if last > LAST_PORT:
        raise ValueError(f"{setting}: {drones} drones need ports up to {last}, beyond {LAST_PORT}")
    return last


def open_udp(address: str, port: int) -> socket.socket:
    """Open a UDP port that does not block.

    Raises:
        OSError: The port cannot be opened; the message names it.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    try:
        opened.bind((address, port))
    except (OSError, OverflowError) as error:
        opened.close()
        raise OSError(f"udp://{address}:{port}: {error}") from None
    return opened


def shown(address: Address) -> str:
    """Return an address as text."""
    return f"{address[0]}:{address[1]}"


class DoorSockets:
    """Sockets that a door waits for in one thread; any other thread can wake it.

    Attributes:
        selector: What to wait for; a socket's data is called with the socket when it is ready.
    """

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._wakes, self._waker = socket.socketpair()
        self._wakes.setblocking(False)
        self._waker.setblocking(False)
        self.selector.register(self._wakes, selectors.EVENT_READ, self._drain)

    def serve(self, timeout: float = 0.0) -> None:
        """Serve the sockets that become ready within a time [s]."""
        for key, _ in self.selector.select(timeout):
            key.data(key.fileobj)

    def wait(self, left: Callable[[], float], interrupted: Callable[[], bool]) -> bool:
        """Serve the sockets until nothing more is awaited; see `Door.collect`.

        Args:
            left: Returns how long to keep waiting [s]; zero or less if time may run on.
            interrupted: See `Door.collect`.

        Returns:
            False if it was interrupted or has waited for long.
        """
        looks = time.monotonic() + _LOOK
        self.serve()
        while (longest := left()) > 0:
            look = looks - time.monotonic()
            if look <= 0 or interrupted():
                return False
            self.serve(min(longest, look))
        return True

    def wake(self) -> None:
        """Make `wait` check whether it is interrupted. From any thread."""
        with suppress(BlockingIOError):  # it is awake already
            self._waker.send(b"\0")

    def _drain(self, wakes: socket.socket) -> None:
        wakes.recv(_MOST_WAKES)

    def close(self) -> None:
        """Close everything that the door has not registered itself."""
        self._wakes.close()
        self._waker.close()
        self.selector.close()
