"""Memories of a Crazyflie: EEPROM, decks, LEDs, trajectories, lighthouse stations, and a test."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol
from zlib import crc32

import numpy as np

from crazyflow_ros.crazyflie.beacon_memory import LighthouseMemory, LocoMemory
from crazyflow_ros.crazyflie.crtp import DATA_SIZE, Packet
from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.estimation.decks import DECKS
from crazyflow_ros.flight import PolynomialTrajectory
from crazyflow_ros.flight.course import AXES, ORDER
from crazyflow_ros.flight.polynomial_trajectory import MAX_TRAJECTORIES

_INFO, _READ, _WRITE = range(3)  # channels
_COUNT, _DETAILS = 1, 2  # commands
_READ_SIZE = DATA_SIZE - 6  # bytes of an answer at most

_EEPROM, _ONE_WIRE, _LEDS, _TRAJECTORIES = 0x00, 0x01, 0x10, 0x12  # kinds of memories
_TESTER, _DECKS = 0x15, 0x19
_TRAJECTORY_SIZE = 4096
_PIECE = struct.Struct(f"<{AXES * ORDER}ff")
_BITCRAZE = 0xBC


class Memory(Protocol):
    """A memory of bytes."""

    kind: int
    size: int

    def read(self, address: int, size: int) -> bytes | None:
        """Return bytes; None outside the memory."""

    def write(self, address: int, data: bytes) -> bool:
        """Write bytes; return False if that is impossible."""


class Bytes:
    """A memory that holds what is written to it.

    Args:
        kind: Type of the memory, as in the firmware.
        content: Initial content.
        writable: Whether clients may write to it.
    """

    def __init__(self, kind: int, content: bytes, *, writable: bool = True) -> None:
        self.kind, self.size, self._writable = kind, len(content), writable
        self.content = bytearray(content)

    def clear(self) -> None:
        """Fill the memory with zeros."""
        self.content = bytearray(self.size)

    def read(self, address: int, size: int) -> bytes | None:
        """Return bytes; None outside the memory."""
        end = address + size
        return bytes(self.content[address:end]) if end <= self.size else None

    def write(self, address: int, data: bytes) -> bool:
        """Write bytes; return False if that is impossible."""
        if not self._writable or address + len(data) > self.size:
            return False
        self.content[address : address + len(data)] = data
        return True


class Tester:
    """A memory for tests: each byte is the low byte of its address; other values are errors.

    Attributes:
        errors: Number of bytes written with another value.
    """

    kind, size = _TESTER, 0x1000

    def __init__(self) -> None:
        self.errors = 0

    def read(self, address: int, size: int) -> bytes:
        """Return the low bytes of addresses."""
        return bytes((address + i) & 0xFF for i in range(size))

    def write(self, address: int, data: bytes) -> bool:
        """Count wrong bytes."""
        self.errors += sum(byte != (address + i) & 0xFF for i, byte in enumerate(data))
        return True


class Trajectories(Bytes):
    """The memory for trajectories, with the definitions of its contents."""

    def __init__(self) -> None:
        super().__init__(_TRAJECTORIES, bytes(_TRAJECTORY_SIZE))
        self._defined: dict[int, tuple[int, int, int]] = {}  # kind, offset [bytes], pieces

    def clear(self) -> None:
        """Forget all trajectories."""
        super().clear()
        self._defined.clear()

    def define(self, number: int, kind: int, offset: int, n_pieces: int) -> None:
        """Define a part of the memory as a trajectory.

        Args:
            number: Number of the trajectory.
            kind: 0 for polynomials of degree 7, 1 for compressed ones.
            offset: Start in the memory [bytes].
            n_pieces: Number of pieces.

        Raises:
            ValueError: There are no such trajectories.
        """
        if number >= MAX_TRAJECTORIES:
            last = MAX_TRAJECTORIES - 1
            raise ValueError(f"the number of a trajectory must be from 0 to {last}, got {number}")
        if kind not in (0, 1):
            raise ValueError(f"trajectory {number} is of the unknown type {kind}")
        self._defined[number] = kind, offset, n_pieces

    def is_compressed(self, number: int) -> bool:
        """Return whether a trajectory is compressed."""
        return self._defined.get(number, (0,))[0] == 1

    def trajectory(self, number: int) -> PolynomialTrajectory:
        """Return a trajectory.

        Raises:
            ValueError: The trajectory is not defined, or exceeds the memory.
        """
        if number not in self._defined:
            known = ", ".join(map(str, sorted(self._defined))) or "none"
            raise ValueError(f"there is no trajectory {number}, defined are: {known}")
        kind, offset, n_pieces = self._defined[number]
        if kind == 1:
            return PolynomialTrajectory.of_compressed(bytes(self.content), offset)
        end = offset + n_pieces * _PIECE.size
        if not n_pieces or end > self.size:
            raise ValueError(
                f"trajectory {number} has {n_pieces} pieces from byte {offset} on, "
                f"expected 1 or more within {self.size} bytes"
            )
        pieces = np.array(list(_PIECE.iter_unpack(self.content[offset:end])))
        return PolynomialTrajectory(pieces[:, -1], pieces[:, :-1].reshape(-1, AXES, ORDER))


class CrazyflieMemories:
    """All memories of one Crazyflie.

    Args:
        number: Last byte of its radio address.
        decks: Names of its decks, see `estimation.decks.DECKS`.
        pilot: Tells the drone's filter what is written about base stations.
        report: Takes the reason if that is refused.

    Attributes:
        trajectories: Trajectories that clients have written.
        tester: A memory for tests.
        lighthouse: Base stations.
    """

    def __init__(
        self,
        number: int,
        decks: Sequence[str],
        pilot: Pilot,
        report: Callable[[str], None],
    ) -> None:
        self.trajectories, self.tester = Trajectories(), Tester()
        leds = Bytes(_LEDS, bytes(24))
        sources, tell = pilot.sources, partial(pilot.tell_beacons, report, "known")
        self.lighthouse = LighthouseMemory(sources.stations, tell)
        self._working = (leds, self.trajectories, self.lighthouse)
        self._all: list[Memory] = [
            Bytes(_EEPROM, _eeprom(number)),
            *(Bytes(_ONE_WIRE, _one_wire(deck), writable=False) for deck in decks),
            leds,
            self.trajectories,
            *([LocoMemory(sources.anchors)] if sources.anchors else []),
            self.lighthouse,
            self.tester,
            Bytes(_DECKS, _deck_memories(), writable=False),
        ]

    def restart(self) -> None:
        """Clear the firmware's working memory."""
        self.tester.errors = 0
        for memory in self._working:
            memory.clear()

    def answer(self, packet: Packet) -> Packet:
        """Return the answer to a packet of this port.

        Raises:
            ValueError: The packet is malformed, or there is no such memory.
        """
        data = packet.data
        if packet.channel == _INFO and data[:1] == bytes([_COUNT]):
            return packet._replace(data=bytes([_COUNT, len(self._all)]))
        if packet.channel == _INFO and data[:1] == bytes([_DETAILS]) and len(data) > 1:
            if data[1] >= len(self._all):
                return packet._replace(data=data[:2])
            memory = self._all[data[1]]
            return packet._replace(data=data[:2] + struct.pack("<BI8x", memory.kind, memory.size))
        if packet.channel not in (_READ, _WRITE) or len(data) < 6 or data[0] >= len(self._all):
            raise ValueError(f"unknown access to memory, {data.hex() or 'empty'}")
        memory, address = self._all[data[0]], int.from_bytes(data[1:5], "little")
        if packet.channel == _WRITE:
            written = memory.write(address, data[5:])
            return packet._replace(data=data[:5] + bytes([0 if written else errno.EIO]))
        found = memory.read(address, data[5]) if data[5] <= _READ_SIZE else None
        status = b"\0" + found if found is not None else bytes([errno.EIO])
        return packet._replace(data=data[:5] + status)


def _eeprom(number: int) -> bytes:
    """Return the configuration of the radio: channel 80, 2 Mbit/s, no trim, and the address."""
    content = b"0xBC" + struct.pack("<BBBffBI", 1, 80, 2, 0.0, 0.0, 0xE7, 0xE7E7E700 + number)
    return (content + bytes([sum(content) % 256])).ljust(0x1FF0, b"\xff")


def _one_wire(deck: str) -> bytes:
    """Return the content of a deck's memory: manufacturer, product, name, revision."""
    header = struct.pack("<BIBB", 0xEB, 0, _BITCRAZE, DECKS[deck])
    texts = b"".join(bytes([i, len(text)]) + text for i, text in ((2, b"A"), (1, deck.encode())))
    elements = bytes([0, len(texts)]) + texts
    parts = (header, elements)
    return b"".join(part + bytes([crc32(part) & 0xFF]) for part in parts).ljust(112, b"\xff")


def _deck_memories() -> bytes:
    """Return an empty list of memories on decks, in version 3 of its format."""
    return bytes([3]).ljust(0x2000, b"\0")
