"""Flights of NanoBench: one table with the firmware's log and Vicon, resampled at 100 Hz.

NanoBench, arXiv 2603.09908.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crazyflow_ros.flight_logs import firmware
from crazyflow_ros.flight_logs.flight_log import FlightLog, TimedValues
from crazyflow_ros.flight_logs.tables import Table, stacked

COLUMNS = frozenset(("t", "px", "py", "pz", "qx", "qy", "qz", "qw", "motor_motor_m1"))
"""Names by which the table is recognised."""
_STRAIGHT = 1e-4  # relative change of a slope, above the rounding of the numbers


def flight_log(name: str, columns: dict[str, np.ndarray]) -> FlightLog:
    """Return the flight.

    Args:
        name: Name of the flight, see `_controller`.
        columns: Columns by name, each (n,), with those of `COLUMNS`.

    Raises:
        ValueError: A value is out of its limits.
    """
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
    """Return how many rows the drone logged.

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
    """Return the controller: with Mellinger's, the PID's thrust stays 0.

    Names with `mell` in them tell it, too, but seven others were flown by Mellinger's as well.
    """
    thrust = columns.get("pid_controller_cmd_thrust")
    is_pid = "mell" not in name if thrust is None else thrust.any()
    return "pid" if is_pid else "mellinger"


def _variable(column: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the firmware's name of `block_group_name`, and the values in its unit."""
    name = column.partition("_")[2].replace("_", ".", 1)
    return name, np.degrees(values) if name.startswith("gyro.") else values
