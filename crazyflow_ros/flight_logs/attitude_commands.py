"""Poses and attitude commands at common times, as CSV or NPZ."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crazyflow_ros.checks.limits import ANGLE, POSITION, QUATERNION, vector
from crazyflow_ros.flight_logs.flight_log import SAMPLES, FlightLog, TimedValues
from crazyflow_ros.flight_logs.tables import stacked

_ARRAYS = {
    "pos": (("x", "y", "z"), POSITION),
    "quat": (("qx", "qy", "qz", "qw"), QUATERNION),
    "command": (("roll", "pitch", "yaw", "thrust"), ANGLE),
}
"""The arrays besides `time`: their columns and the limits of their numbers."""


def flight_log(name: str, columns: dict[str, np.ndarray]) -> FlightLog:
    """Return the flight of a CSV file.

    Args:
        name: Its name.
        columns: Columns by name, each (n,).

    Raises:
        ValueError: A column is missing, or a value is out of its limits.
    """
    expected = ["time", *(column for names, _ in _ARRAYS.values() for column in names)]
    if missing := [column for column in expected if column not in columns]:
        raise ValueError(f"the first line lacks the names {', '.join(missing)}")
    arrays = {array: stacked(columns, names) for array, (names, _) in _ARRAYS.items()}
    return of_arrays(name, {"time": columns["time"], **arrays})


def of_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> FlightLog:
    """Return the flight of an NPZ file.

    Args:
        name: Its name.
        arrays: Arrays by name: time (n,), pos (n, 3), quat (n, 4) and command (n, 4).

    Raises:
        ValueError: An array is missing, or a value is out of its limits.
    """
    if missing := [array for array in ("time", *_ARRAYS) if array not in arrays]:
        raise ValueError(f"there is no array {', '.join(missing)}")
    n = arrays["time"].size
    if not 1 <= n <= SAMPLES:
        raise ValueError(f"a flight must have 1 to {SAMPLES} samples, got {n}")
    pos, quat, command = (
        vector(array, arrays[array], (n, len(names)), limit)
        for array, (names, limit) in _ARRAYS.items()
    )
    return FlightLog(
        name,
        pose=TimedValues(arrays["time"], np.hstack((pos, quat))),
        attitude_command=TimedValues(arrays["time"], command),
    )
