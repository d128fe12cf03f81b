"""Tables of contents: how a client finds the parameters and log variables of a Crazyflie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from zlib import crc32

from crazyflow_ros.crazyflie.packets import DATA_SIZE, Packet

_ITEM, _INFO = 2, 3  # commands


class Contents:
    """The table of contents of one port.

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
