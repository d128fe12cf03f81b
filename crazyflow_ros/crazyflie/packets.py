"""CRTP, the protocol of the Crazyflie: packets, ports, types of numbers, compressed quaternions.

A packet is a byte with port and channel, and up to 30 bytes of data. Numbers are little-endian.
Over UDP, a datagram is a packet.
"""

from __future__ import annotations

from enum import IntEnum
from math import sqrt
from typing import NamedTuple

import numpy as np

from crazyflow_ros.crazyflie.link import PROBE

DATA_SIZE = 30
"""Maximum number of data bytes in a packet."""
NULL_PACKETS = (PROBE, b"\xf3")
"""Packets without meaning."""

_RESERVED = 0x0C  # two bits that are set in each header
_QUATERNION_BITS = 9  # of the magnitude of a component


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


def compressed(quat: np.ndarray) -> int:
    """Return a unit quaternion xyzw (4,) in 32 bits.

    The index of the largest component takes the first two bits; the others follow in order, each
    with a sign and nine bits of magnitude, in units of 1/sqrt(2)/511. The largest is positive.
    """
    largest = int(np.abs(quat).argmax())
    signed = quat if quat[largest] >= 0 else -quat
    steps = (1 << _QUATERNION_BITS) - 1
    number = largest
    for i, x in enumerate(signed.tolist()):
        if i != largest:
            magnitude = int(abs(x) * sqrt(2) * steps + 0.5)
            number = number << 10 | (x < 0) << _QUATERNION_BITS | min(magnitude, steps)
    return number


def decompressed(number: int) -> np.ndarray:
    """Return the unit quaternion xyzw (4,) of the result of `compressed`."""
    steps = (1 << _QUATERNION_BITS) - 1
    largest, quat = number >> 30, np.zeros(4)
    for i in reversed(range(4)):
        if i != largest:
            magnitude = (number & steps) / steps / sqrt(2)
            quat[i] = -magnitude if number >> _QUATERNION_BITS & 1 else magnitude
            number >>= 10
    quat[largest] = sqrt(max(0.0, 1.0 - float(quat @ quat)))
    return quat / np.linalg.norm(quat)
