"""CRTP, the protocol of the Crazyflie: packets, ports, types of numbers, tables of contents.

A packet is a byte with port and channel, and up to 30 bytes of data. Numbers are little-endian.
Over UDP, a datagram is a packet.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from crazyflow_ros.crazyflie.link_config import PROBE

DATA_SIZE = 30
"""Maximum number of data bytes in a packet."""
NULL_PACKETS = (PROBE, b"\xf3")
"""Packets without meaning."""

_RESERVED = 0x0C  # two bits that are set in each header
_ITEM, _INFO = 2, 3  # commands of tables of contents


class Port(IntEnum):
    """Port of a packet: the part of the firmware that receives or sends it."""

    console = 0
    parameters = 2
    attitude_setpoint = 3
    memory = 4
    log = 5
    localisation = 6
    setpoint = 7
    high_level = 8
    supervisor = 9
    platform = 13
    link = 15


class Packet(NamedTuple):
    """A packet."""

    port: int
    channel: int
    data: bytes

    @classmethod
    def parse(cls, datagram: bytes) -> Packet:
        """Return the packet of a datagram.

        Raises:
            ValueError: The datagram is empty or too long.
        """
        if not 1 <= len(datagram) <= 1 + DATA_SIZE:
            raise ValueError(f"a packet has 1 to {1 + DATA_SIZE} bytes, got {len(datagram)}")
        return cls(datagram[0] >> 4, datagram[0] & 3, datagram[1:])

    def __bytes__(self) -> bytes:
        return bytes([self.port << 4 | _RESERVED | self.channel]) + self.data


def texts(text: str) -> list[Packet]:
    """Return the packets of a line on the console."""
    line = f"{text}\n".encode("ascii", "replace")
    starts = range(0, len(line), DATA_SIZE)
    return [Packet(Port.console, 0, line[start : start + DATA_SIZE]) for start in starts]


class CType(NamedTuple):
    """A type of the firmware's numbers."""

    format: str
    """Format as in `struct`, without byte order."""
    parameter: int
    """Number of the type in tables of parameters."""
    log: int
    """Number of the type in tables of log variables; 0 if none have it."""


CTYPES = {
    "uint8": CType("B", 0x08, 1),
    "uint16": CType("H", 0x09, 2),
    "uint32": CType("I", 0x0A, 3),
    "int8": CType("b", 0x00, 4),
    "int16": CType("h", 0x01, 5),
    "int32": CType("i", 0x02, 6),
    "float": CType("f", 0x06, 7),
}
"""Types by their C names."""


class Contents:
    """The table of contents of one port, where clients find parameters or log variables.

    Args:
        entries: Type as sent, and group and name, of each item.
        extra: Bytes that follow the number of items and their checksum.
    """

    def __init__(self, entries: Sequence[tuple[int, tuple[str, str]]], extra: bytes = b"") -> None:
        self._items = [
            bytes([kind]) + group.encode() + b"\0" + name.encode() + b"\0"
            for kind, (group, name) in entries
        ]
        for item, (_, name) in zip(self._items, entries):
            if 3 + len(item) > DATA_SIZE:
                raise ValueError(f"{'.'.join(name)} is too long for a packet")
        # Clients keep the table of each checksum in a file.
        self._info = struct.pack("<HI", len(entries), crc32(b"".join(self._items))) + extra

    def answer(self, packet: Packet) -> Packet | None:
        """Return the answer to a request; None if the packet is not a request."""
        command, *rest = packet.data or b"\0"
        if command == _INFO:
            return packet._replace(data=bytes([_INFO]) + self._info)
        if command == _ITEM and len(rest) >= 2:
            number = rest[0] | rest[1] << 8
            found = packet.data[1:3] + self._items[number] if number < len(self._items) else b""
            return packet._replace(data=bytes([_ITEM]) + found)
        return None
