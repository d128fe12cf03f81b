"""Layout of the memory that the simulator shares with controllers, as NumPy types.

The counterpart of `hardware/include/crazyflow_ros/shared_memory.hpp`, which explains the layout.
Both sides hash all names, offsets and sizes, and refuse to connect if the hashes differ.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crazyflow_ros.drones.rotors import MOST

MAGIC = b"crazyflw"
VERSION = 2
VERSION_WITH_ROBOTS = 3
"""Of a memory that also has joints and sensors of robots in the world."""

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
        ("n_rotors", "u4"),
        ("rotor_torque", "f8", (MOST, 3)),
        ("rotor_thrust", "f8", (MOST, 3)),
        ("levels", "u8"),
        ("reserved1", "u8", 1),
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
    [
        ("tick", "u8"),
        ("epoch", "u8"),
        ("level", "u8"),
        ("session", "u8"),
        ("values", "f8", MOST),
        ("reserved", "u8", 4),
    ]
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
        ("imu_orientation", "f8", 4),
        ("imu_angular_velocity", "f8", 3),
        ("imu_linear_acceleration", "f8", 3),
        ("range", "f8"),
        ("level", "f8"),
        ("rotor_position", "f8", MOST),
        ("rotor_velocity", "f8", MOST),
        ("reserved", "f8", 7),
    ]
)
ROBOTS = np.dtype(
    [("n_joints", "u4"), ("n_parts", "u4"), ("n_values", "u4"), ("reserved", "u4", 13)]
)
PART = np.dtype(
    [
        ("name", "S60"),
        ("kind", "i4"),
        ("first", "u4"),
        ("size", "u4"),
        ("modes", "u4"),
        ("reserved", "u4"),
    ]
)
JOINT = -1
"""Kind of a part that is a joint; others are sensors, with their `mjtSensor`."""
CARRIED = -2
"""Kind of a part that is a quantity of a sensor that a drone carries, `<sensor>/<quantity>`."""
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
_TYPES_WITH_ROBOTS = _TYPES | {"Robots": ROBOTS, "Part": PART}


def is_name(name: str) -> bool:
    """Return whether a segment may have this name, see `NAME_RULE`."""
    return re.fullmatch(r"[\w.-]{1,200}", name, re.ASCII) is not None


def offset(dtype: np.dtype, field: str) -> int:
    """Return the offset of a field in bytes."""
    assert dtype.fields is not None
    return int(dtype.fields[field][1])


class Entry(NamedTuple):
    """A joint or sensor of a robot in the world, or a reading of a sensor that a drone carries."""

    name: str
    kind: int
    """`JOINT`, `CARRIED`, or a member of `mjtSensor`."""
    size: int
    """Numbers that it reads; those of a joint are position, velocity and effort."""
    modes: int = 0
    """How a joint can be commanded, see `Mode`."""


def layout_hash(*, robots: bool = False) -> int:
    """Return the FNV-1a hash over the name, offset and size of each field.

    Args:
        robots: Whether the memory also has robots.
    """
    value = 2166136261
    for type_name, dtype in (_TYPES_WITH_ROBOTS if robots else _TYPES).items():
        assert dtype.fields is not None
        for name, field in dtype.fields.items():
            if name.startswith("reserved"):
                continue
            text = f"{type_name}.{name}".encode()
            for byte in text + struct.pack("<II", field[1], field[0].itemsize):
                value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def segment(n_drones: int, parts: Sequence[Entry] = ()) -> np.dtype:
    """Return the type of the whole memory: fields header, drones, slots and states.

    With robots, there are also robots, parts and, in states, values. Their joints follow the drones
    in drones and slots.

    Args:
        n_drones: Number of drones.
        parts: Joints and sensors of robots.
    """
    state = [("stamp", STATE), ("drones", DRONE_STATE, n_drones)]
    if not parts:
        rows = [("drones", DRONE, n_drones), ("slots", COMMAND_SLOT, n_drones)]
        return np.dtype([("header", HEADER), *rows, ("states", np.dtype(state), 2)])
    n = n_drones + sum(part.kind == JOINT for part in parts)
    values = ("values", "f8", sum(part.size for part in parts))
    return np.dtype(
        [
            *(("header", HEADER), ("robots", ROBOTS), ("drones", DRONE, n)),
            *(("slots", COMMAND_SLOT, n), ("parts", PART, len(parts))),
            ("states", np.dtype([*state, values]), 2),
        ]
    )


def numbers_of(states: np.ndarray, n_rotors: int) -> np.ndarray:
    """Return all of the drones' states up to the angles of n rotors, in the order of the layout."""
    used = offset(DRONE_STATE, "rotor_position") // 8 + n_rotors
    return states.view(np.float64).reshape(len(states), DRONE_STATE.itemsize // 8)[:, :used]
