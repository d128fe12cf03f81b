"""Flights in CSV: log blocks of a Crazyflie, NanoBench, battery data, poses with commands."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crazyflow_ros.checks.limits import ANGLE, POSITION, QUATERNION, shown, vector
from crazyflow_ros.flight_logs import firmware
from crazyflow_ros.flight_logs.firmware import Table, stacked
from crazyflow_ros.flight_logs.flight_log import SAMPLES, FlightLog, TimedValues

_NAMES_BYTES = 1 << 16  # of the first line
_TIMES = ("Timestamp", "timestamp")  # of Bitcraze's client, and of scripts of cflib
_UNIT = 1e-3  # s
_WRAP = 1 << 24  # ms; packets have 24 bits for the time
_NANOBENCH = {"t", "px", "py", "pz", "qx", "qy", "qz", "qw", "motor_motor_m1"}
_STRAIGHT = 1e-4  # relative change of a slope, above the rounding of the numbers
_BATTERY_DATA = {"x_estimate", "y_estimate", "z_estimate", "battery_voltage"}
_BATTERY_PERIOD = 0.01  # s, between lines
_ARRAYS = {
    "pos": (("x", "y", "z"), POSITION),
    "quat": (("qx", "qy", "qz", "qw"), QUATERNION),
    "command": (("roll", "pitch", "yaw", "thrust"), ANGLE),
}
"""Arrays of a flight with attitude commands, beside `time`: columns, and limits of the numbers."""


def read_columns(content: bytes) -> dict[str, np.ndarray]:
    """Return the columns of a CSV file by name, each (n,).

    Raises:
        ValueError: It is not such a table.
    """
    text = io.BytesIO(content)
    first = text.readline(_NAMES_BYTES + 1)
    if len(first) > _NAMES_BYTES:
        raise ValueError(f"the first line has more than {_NAMES_BYTES} bytes, expected names")
    names = [name.strip() for name in first.decode().split(",")]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the first line has the name {shown(twice)!r} twice")
    if text.tell() == len(content):
        raise ValueError("there are no lines of numbers")
    table = np.loadtxt(text, delimiter=",", ndmin=2, max_rows=SAMPLES + 1, encoding="utf-8")
    if table.shape[-1] != len(names):
        raise ValueError(f"lines must have {len(names)} numbers, got {table.shape[-1]}")
    return dict(zip(names, table.T))


def is_block(columns: Iterable[str]) -> bool:
    """Whether columns are those of a log block: the time and variables of the firmware."""
    return any(name in _TIMES for name in columns) and any("." in name for name in columns)


def of_blocks(name: str, blocks: Sequence[dict[str, np.ndarray]], clock: float | None) -> FlightLog:
    """Return the flight of the log blocks that a Crazyflie sends during one connection.

    The recorder of Bitcraze's client (`cfclient/utils/logdatawriter.py`) writes a file for each.

    Args:
        name: Its name.
        blocks: Columns by name, each (n,), of each block.
        clock: Seconds per second of the log's clock; None: 1, for packets have the time of the
            operating system.

    Raises:
        ValueError: There is no pose, or a value is out of its limits.
    """
    times = [next(columns[name] for name in _TIMES if name in columns) for columns in blocks]
    first = min(time[0] for time in times)
    scale = 1.0 if clock is None else clock
    tables = [
        Table(scale * _UNIT * (np.unwrap(time, period=_WRAP) - first), columns)
        for time, columns in zip(times, blocks)
    ]
    return replace(firmware.flight_log(name, tables), clock=scale)


def of_columns(name: str, columns: dict[str, np.ndarray]) -> FlightLog:
    """Return the flight of any other CSV file; the names of its columns tell the format.

    Args:
        name: Its name.
        columns: Columns by name, each (n,).

    Raises:
        ValueError: A column is missing, or a value is out of its limits.
    """
    if columns.keys() >= _NANOBENCH:
        return _of_nanobench(name, columns)
    if columns.keys() >= _BATTERY_DATA:
        return _of_battery_data(name, columns)
    expected = ["time", *(column for names, _ in _ARRAYS.values() for column in names)]
    if missing := [column for column in expected if column not in columns]:
        raise ValueError(f"the first line lacks the names {', '.join(missing)}")
    arrays = {array: stacked(columns, names) for array, (names, _) in _ARRAYS.items()}
    return of_arrays(name, {"time": columns["time"], **arrays})


def of_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> FlightLog:
    """Return the flight of poses and attitude commands at common times, as in an NPZ file.

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


def _of_battery_data(name: str, columns: dict[str, np.ndarray]) -> FlightLog:
    """Return a flight of `Crazyflie-2.0-battery-data`: estimated positions and voltages at 100 Hz.

    R. Craciun, A. Burlacu, "AI-Based Battery Consumption Prediction for Nano-drones", MTM&Robotics
    2024. Attitudes were not logged, and are level here.
    """
    time = _BATTERY_PERIOD * np.arange(len(columns["battery_voltage"]))
    pose = np.zeros((len(time), 7))
    pose[:, :3] = stacked(columns, [f"{axis}_estimate" for axis in "xyz"])
    pose[:, 6] = 1.0
    voltage = TimedValues(time, columns["battery_voltage"][:, None])
    return FlightLog(name, TimedValues(time, pose), voltage=voltage, pose_is_estimate=True)


def _of_nanobench(name: str, columns: dict[str, np.ndarray]) -> FlightLog:
    """Return a flight of NanoBench (arXiv 2603.09908): the firmware's log and Vicon at 100 Hz."""
    time = columns["t"] - columns["t"][0]
    pose = stacked(columns, ("px", "py", "pz", "qx", "qy", "qz", "qw"))
    variables = dict(_variable(*column) for column in columns.items())
    controller = _controller(name, columns)
    if controller != "pid":  # these are what the PID wanted when it flew last
        variables = {n: v for n, v in variables.items() if not n.startswith("controller.")}
    end = _end_of_log(time, variables)
    table = Table(time[:end], {name: values[:end] for name, values in variables.items()})
    log = firmware.flight_log(name, [table], TimedValues(time, pose))
    return replace(log, controller=controller)


def _end_of_log(time: np.ndarray, variables: dict[str, np.ndarray]) -> int:
    """Return how many rows of NanoBench the drone logged.

    Later ones, until the end of Vicon's, are extrapolated in a straight line; for 23 s in
    B9_trefoil_mellinger_fast_rep1. Real readings of the IMU are never on one.
    """
    readings = [values for name, values in variables.items() if name.startswith(("gyro.", "acc."))]
    if not readings or len(time) < 3:
        return len(time)
    slopes = np.diff(readings) / np.diff(time)
    bends = np.abs(np.diff(slopes)) > _STRAIGHT * (1 + np.abs(slopes[:, 1:]))
    rows = np.flatnonzero(bends.any(axis=0))
    return int(rows[-1]) + 3 if len(rows) else len(time)


def _controller(name: str, columns: dict[str, np.ndarray]) -> str:
    """Return the controller of NanoBench: while Mellinger's flies, the PID's thrust stays 0.

    Names with `mell` in them tell it, too, but seven others were flown by Mellinger's as well.
    """
    thrust = columns.get("pid_controller_cmd_thrust")
    is_pid = "mell" not in name if thrust is None else thrust.any()
    return "pid" if is_pid else "mellinger"


def _variable(column: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the firmware's name of `block_group_name`, and the values in its unit."""
    name = column.partition("_")[2].replace("_", ".", 1)
    return name, np.degrees(values) if name.startswith("gyro.") else values
