"""Layout of the memory that the simulator shares with controllers, as NumPy types.

The counterpart of `hardware/include/crazyflow_ros/shared_memory.hpp`, which explains the layout.
Both sides hash all names, offsets and sizes, and refuse to connect if the hashes differ.
"""

from __future__ import annotations

import re
import struct

import numpy as np

MAGIC = b"crazyflw"
VERSION = 2

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "u4"),
        ("layout", "u4"),
        ("size", "u8"),
        ("n_drones", "u4"),
        ("freq", "u4"),
        ("period", "u4"),
        ("lock_step", "u4"),
        ("simulator_pid", "i4"),
        ("reserved0", "u4"),
        ("rotor_torque", "f8", 3),
        ("rotor_thrust", "f8", 3),
        ("reserved1", "u8", 4),
        ("state_count", "u4"),
        ("paused", "u4"),
        ("reserved2", "u8", 7),
        ("command_count", "u4"),
        ("reserved3", "u4"),
        ("reserved4", "u8", 7),
    ]
)
DRONE = np.dtype([("name", "S60"), ("awaited", "u4")])
COMMAND = np.dtype(
    [("tick", "u8"), ("epoch", "u8"), ("level", "u8"), ("values", "f8", 4), ("session", "u8")]
)
COMMAND_SLOT = np.dtype(
    [
        ("session", "u8"),
        ("count", "u8"),
        ("active", "u4"),
        ("pid", "i4"),
        ("reserved", "u8", 5),
        ("buffers", COMMAND, 2),
    ]
)
STATE = np.dtype([("tick", "u8"), ("epoch", "u8"), ("time_ns", "i8"), ("reserved", "u8", 5)])
DRONE_STATE = np.dtype(
    [
        ("position", "f8", 3),
        ("orientation", "f8", 4),
        ("velocity", "f8", 3),
        ("angular_velocity", "f8", 3),
        ("rotor_position", "f8", 4),
        ("rotor_velocity", "f8", 4),
        ("imu_orientation", "f8", 4),
        ("imu_angular_velocity", "f8", 3),
        ("imu_linear_acceleration", "f8", 3),
        ("range", "f8"),
        ("level", "f8"),
        ("reserved", "f8", 7),
    ]
)
NAME_RULE = "1 to 200 letters, digits, '_', '.' or '-'"
"""Rule for the name of a segment."""
MAX_NAME = 59  # bytes, plus a terminating zero
WAITING = 5
"""Additional level, for a controller that has started but has no commands yet: the drone
continues as before."""

_TYPES = {
    "Header": HEADER,
    "Drone": DRONE,
    "Command": COMMAND,
    "CommandSlot": COMMAND_SLOT,
    "State": STATE,
    "DroneState": DRONE_STATE,
}


def is_name(name: str) -> bool:
    """Return whether a segment may have this name, see `NAME_RULE`."""
    return re.fullmatch(r"[\w.-]{1,200}", name, re.ASCII) is not None


def offset(dtype: np.dtype, field: str) -> int:
    """Return the offset of a field in bytes."""
    assert dtype.fields is not None
    return int(dtype.fields[field][1])


def layout_hash() -> int:
    """Return the FNV-1a hash over the name, offset and size of each field."""
    value = 2166136261
    for type_name, dtype in _TYPES.items():
        assert dtype.fields is not None
        for name, field in dtype.fields.items():
            if name.startswith("reserved"):
                continue
            text = f"{type_name}.{name}".encode()
            for byte in text + struct.pack("<II", field[1], field[0].itemsize):
                value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def segment(n_drones: int) -> np.dtype:
    """Return the type of the whole memory: fields header, drones, slots and states."""
    state = np.dtype([("stamp", STATE), ("drones", DRONE_STATE, n_drones)])
    return np.dtype(
        [
            ("header", HEADER),
            ("drones", DRONE, n_drones),
            ("slots", COMMAND_SLOT, n_drones),
            ("states", state, 2),
        ]
    )
