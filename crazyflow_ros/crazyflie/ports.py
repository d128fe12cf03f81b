"""UDP ports that open before there are drones, so that programs can start at the same time."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from contextlib import suppress
from typing import NamedTuple

from crazyflow_ros.crazyflie.link_config import PROBE

Address = tuple[str, int]

_RECEIVE_SIZE = 64  # bytes, more than any packet
_MOST_HELD = 200  # datagrams of a port, more than a program sends without an answer


class OpenPort(NamedTuple):
    """An open port, and the datagrams that wait for its drone."""

    socket: socket.socket
    held: list[tuple[Address, bytes]]
    """Each datagram follows the address of its sender."""


def open_port(address: str, port: int) -> socket.socket:
    """Open a UDP port.

    Raises:
        OSError: The address is not one of this machine, or another program uses the port.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    try:
        opened.bind((address, port))
    except (OSError, OverflowError) as error:
        opened.close()
        raise OSError(f"udp://{address}:{port}: {error}") from None
    return opened


class Ports:
    """The ports of drones that do not exist yet.

    cflib sends the first packet of a connection once and waits for the answer indefinitely. So a
    thread keeps what arrives until the drones are ready, and answers the probes of programs that
    search for drones.

    Args:
        address: Address of the network interface.
        first: Port of the first drone; the others follow.
        n_drones: Number of drones.

    Raises:
        OSError: A port cannot be opened.
    """

    def __init__(self, address: str, first: int, n_drones: int) -> None:
        self._open: dict[int, OpenPort] = {}
        self._wakes, self._waker = os.pipe()
        try:
            for port in range(first, first + n_drones):
                self._open[port] = OpenPort(open_port(address, port), [])
        except OSError:
            self.close()
            raise
        self._thread = threading.Thread(target=self._wait, name="ports", daemon=True)
        self._thread.start()

    def hand_over(self) -> dict[int, OpenPort]:
        """Return the ports by number; the caller serves and closes them."""
        self._end()
        handed, self._open = self._open, {}
        return handed

    def close(self) -> None:
        """Close the ports that were not handed over."""
        self._end()
        while self._open:
            self._open.popitem()[1].socket.close()

    def _end(self) -> None:
        if self._waker < 0:
            return
        os.close(self._waker)
        self._waker = -1
        if hasattr(self, "_thread"):
            self._thread.join()
        os.close(self._wakes)

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakes, selectors.EVENT_READ)
            for one in self._open.values():
                selector.register(one.socket, selectors.EVENT_READ, one)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    self._receive(key.data)

    @staticmethod
    def _receive(one: OpenPort) -> None:
        with suppress(OSError):  # an answer to a program that has ended came back
            datagram, sender = one.socket.recvfrom(_RECEIVE_SIZE)
            if datagram == PROBE:
                one.socket.sendto(datagram, sender)
            elif len(one.held) < _MOST_HELD:
                one.held.append((sender, datagram))
