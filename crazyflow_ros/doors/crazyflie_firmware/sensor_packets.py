"""Packets between a firmware built for a computer and its simulated sensors and motors.

Each datagram is a CRTP packet. Source: `sensors_sitl.c`, `power_distribution_sitl.c` and
`socketlink.c` of CrazySim's firmware, github.com/llanesc/crazyflie-firmware, branch sitl-release;
`crtp_localization_service.c` for the pose.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

HELLO = b"\xf3"
"""A firmware sends this until it receives the same."""
MOST_BYTES = 32
"""Greatest size of a packet, with its header."""
PORTS = 0xF3
"""Bits of a header that hold port and channel; the others belong to a radio link."""
MOTORS = 0x90
"""Header of the packets about motors and sensors: port 9, channel 0."""

_IMU, _MAGNETOMETER, _BAROMETER = b"\x90\x00", b"\x90\x01", b"\x90\x02"
_POSE = b"\x61\x08"  # port 6, channel 1: EXT_POSE, as of a motion capture system
_OUTPUTS = struct.Struct("<x4H")
_G = 9.81  # m/s^2, GRAVITY_MAGNITUDE
_PER_ACCELERATION = 65536 / 32 / _G  # a range of 16 g
_PER_RATE = math.degrees(65536 / 4000)  # a range of 2000 degrees a second
_PER_TESLA = 1e4 * 666.7
_PER_PASCAL = 1e-2  # mbar


def _integers(values: np.ndarray) -> np.ndarray:
    """Round to 16 bits and saturate at their range, as an instrument does."""
    return np.rint(values).clip(-32768, 32767).astype("<i2")


def imu(force: np.ndarray, rates: np.ndarray) -> list[bytes]:
    """Return the packets of accelerometers and gyroscopes.

    Args:
        force: (M, 3) specific force, FLU [m/s²].
        rates: (M, 3) angular velocity, FLU [rad/s].
    """
    both = _integers(np.hstack([force * _PER_ACCELERATION, rates * _PER_RATE]))
    return [_IMU + row.tobytes() for row in both]


def magnetometer(field: np.ndarray) -> list[bytes]:
    """Return the packets of magnetometers, from (M, 3) fields, FLU [T]."""
    return [_MAGNETOMETER + row.tobytes() for row in _integers(field * _PER_TESLA)]


def barometer(pressure: np.ndarray, altitude: np.ndarray, temperature: float) -> list[bytes]:
    """Return the packets of barometers.

    Args:
        pressure: (M,) Pa.
        altitude: (M,) above sea level, which the barometer computes from the pressure [m].
        temperature: Degrees Celsius.
    """
    rows = zip((pressure * _PER_PASCAL).tolist(), altitude.tolist())
    return [_BAROMETER + struct.pack("<3f", mbar, temperature, asl) for mbar, asl in rows]


def pose(position: np.ndarray, attitude: np.ndarray) -> list[bytes]:
    """Return the packets of a motion capture system.

    Args:
        position: (M, 3) m.
        attitude: (M, 4) quaternions xyzw, FLU to the world.
    """
    rows = np.hstack([position, attitude]).astype("<f4")
    return [_POSE + row.tobytes() for row in rows]


def outputs(packet: bytes) -> Sequence[int] | None:
    """Return the outputs of the four motors, 0 to 65535, or None for any other packet."""
    if len(packet) != _OUTPUTS.size or packet[0] & PORTS != MOTORS:
        return None
    return _OUTPUTS.unpack(packet)
