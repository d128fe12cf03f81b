"""The two ports of a drone: for its firmware, and for programs that fly it with cflib."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.doors.crazyflie_firmware import sensor_packets
from crazyflow_ros.doors.door_sockets import Address, open_udp, shown

_BURST = 16  # packets of one port that are read before it is the others' turn
_UNDER_WAY = 4  # packets that a firmware certainly holds: of CrazySim's builds, some lose a sixth
_PATIENCE = 0.1  # s without outputs after which it is not waited for
_ALIVE = 1.0  # s without a packet after which another firmware may take the place of one
_CLIENTS, _SILENCE = 16, 5.0  # programs, s after which one is forgotten; cflib sends ten a second
_PROBE = b"\xff"  # cflib's packet without meaning: any answer says that there is a Crazyflie
_RECEIVED = 64  # bytes, more than any packet has


class FirmwareLink:
    """Passes packets between a firmware and the programs that fly it.

    The relay's thread calls `serve`, the physics thread `send`.

    Args:
        drone: Name of the drone.
        address: Address of the network interface.
        port: UDP port for the firmware.
        cflib_port: UDP port for programs.
        logger: Logs who connects and what is refused.
        wake: Called when there are new outputs.

    Attributes:
        drone: As given.
        latest: The newest outputs of the motors and their count so far; None until a connected
            firmware has sent some.

    Raises:
        OSError: A port cannot be opened.
    """

    def __init__(
        self,
        drone: str,
        address: str,
        port: int,
        cflib_port: int,
        *,
        logger: Logger,
        wake: Callable[[], None],
    ) -> None:
        self.drone, self._port = drone, port
        self._logger, self._wake = logger, wake
        self.latest: tuple[Sequence[int], int] | None = None
        self._count = 0
        self._under_way = 0  # packets since the newest outputs
        self._peer: Address | None = None
        self._heard = self._answered = 0.0  # wall times of its newest packet and outputs
        self._clients: dict[Address, float] = {}  # when they were heard
        self._firmware = open_udp(address, port)
        try:
            self._programs = open_udp(address, cflib_port)
        except OSError:
            self._firmware.close()
            raise

    @property
    def is_connected(self) -> bool:
        """Whether a firmware has connected; it may have ended since."""
        return self._peer is not None

    # In the physics thread.

    def send(self, readings: Sequence[bytes]) -> None:
        """Send readings to the firmware, if there is one."""
        peer = self._peer
        if peer is not None:
            self._under_way += len(readings)
            for packet in readings:
                _send(self._firmware, packet, peer)

    @property
    def is_full(self) -> bool:
        """Whether a firmware that runs its motors may lose further packets."""
        is_there = time.monotonic() - self._answered < _PATIENCE
        return is_there and self.latest is not None and self._under_way >= _UNDER_WAY

    # In the relay's thread.

    def register(self, selector: selectors.BaseSelector) -> None:
        """Register the sockets; the data of each is to be called when it is ready."""
        selector.register(self._firmware, selectors.EVENT_READ, self._serve_firmware)
        selector.register(self._programs, selectors.EVENT_READ, self._serve_programs)

    def _serve_firmware(self) -> None:
        for packet, sender in _received(self._firmware):
            if packet == sensor_packets.HELLO:
                self._greet(sender)
            elif sender != self._peer:
                self._refuse(f"a packet of {len(packet)} bytes from {shown(sender)}", _WHO)
            else:
                self._take(packet)

    def _greet(self, sender: Address) -> None:
        """Accept a firmware unless another one flies the drone."""
        now = time.monotonic()
        if sender != self._peer:
            if self._peer is not None and now - self._heard < _ALIVE:
                self._refuse(f"a second firmware, {shown(sender)}", "one flies the drone")
                return
            self._logger.info(
                f"{self.drone}: a firmware has connected to UDP {self._port}, and calibrates its "
                "sensors"
            )
            self._peer, self.latest = sender, None
        self._heard = now
        _send(self._firmware, sensor_packets.HELLO, sender)

    def _take(self, packet: bytes) -> None:
        """Record motor outputs; pass any other packet on to the programs."""
        if not 1 <= len(packet) <= sensor_packets.MOST_BYTES:
            self._refuse(f"a packet of {len(packet)} bytes from the firmware", _HOW_LONG)
            return
        self._heard = time.monotonic()
        outputs = sensor_packets.outputs(packet)
        if outputs is not None:
            self._count, self._answered = self._count + 1, self._heard
            self.latest, self._under_way = (outputs, self._count), 0
            self._wake()
            return
        earliest = self._heard - _SILENCE
        for client in [c for c, heard in self._clients.items() if heard < earliest]:
            del self._clients[client]
        for client in self._clients:
            _send(self._programs, packet, client)

    def _serve_programs(self) -> None:
        for packet, sender in _received(self._programs):
            peer = self._peer
            if not 1 <= len(packet) <= sensor_packets.MOST_BYTES:
                self._refuse(f"a packet of {len(packet)} bytes from {shown(sender)}", _HOW_LONG)
            elif peer is None:
                self._refuse(f"a packet from {shown(sender)}", "there is no firmware yet")
            elif packet == _PROBE:
                _send(self._programs, _PROBE, sender)
                if sender in self._clients:
                    self._clients[sender] = time.monotonic()
            elif sender in self._clients or len(self._clients) < _CLIENTS:
                self._clients[sender] = time.monotonic()
                _send(self._firmware, packet, peer)
            else:
                many = f"{_CLIENTS} programs fly the drone already"
                self._refuse(f"a packet from {shown(sender)}", many)

    def _refuse(self, what: str, why: str) -> None:
        self._logger.warning(f"{self.drone}: {what} is refused: {why}")

    # From any thread.

    def close(self) -> None:
        """Close the ports."""
        self._firmware.close()
        self._programs.close()


_WHO = "it is not that of the firmware that has connected; start that firmware again"
_HOW_LONG = f"a packet has 1 to {sensor_packets.MOST_BYTES} bytes"


class Relay:
    """A thread that serves the ports of all drones, even while time stands still.

    Args:
        links: The ports.
    """

    def __init__(self, links: Sequence[FirmwareLink]) -> None:
        self._links, self._ending = links, False
        self._selector = selectors.DefaultSelector()
        self._wakes, self._waker = socket.socketpair()
        self._selector.register(self._wakes, selectors.EVENT_READ)
        for link in links:
            link.register(self._selector)
        self._thread = threading.Thread(target=self._main, name="firmware", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select():
                if key.data is not None:
                    key.data()

    def close(self) -> None:
        """End the thread, and close the ports."""
        if self._ending:
            return
        self._ending = True
        self._waker.send(b"\0")
        self._thread.join()
        self._selector.close()
        self._wakes.close()
        self._waker.close()
        for link in self._links:
            link.close()


def _received(port: socket.socket) -> list[tuple[bytes, Address]]:
    """Return up to `_BURST` packets that have arrived, with their senders."""
    found = []
    with suppress(BlockingIOError, ConnectionError):
        for _ in range(_BURST):
            found.append(port.recvfrom(_RECEIVED))
    return found


def _send(port: socket.socket, packet: bytes, to: Address) -> None:
    with suppress(OSError):  # it has ended, or is too slow
        port.sendto(packet, to)
