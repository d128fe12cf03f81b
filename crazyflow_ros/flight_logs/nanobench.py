"""Flights of NanoBench: one table with the firmware's log and Vicon, resampled at 100 Hz.

NanoBench, arXiv 2603.09908.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crazyflow_ros.flight_logs import firmware
from crazyflow_ros.flight_logs.flight_log import FlightLog, Samples
from crazyflow_ros.flight_logs.tables import Table, stacked

COLUMNS = frozenset(("t", "px", "py", "pz", "qx", "qy", "qz", "qw", "motor_motor_m1"))
"""Names by which the table is recognised."""


def flight_log(name: str, columns: dict[str, np.ndarray]) -> FlightLog:
    """Return the flight.

    Args:
        name: Name of the flight, which tells the controller: Mellinger's have `mell` in it.
        columns: Columns by name, each (n,), with those of `COLUMNS`.

    Raises:
        ValueError: A value is out of its limits.
    """
    time = columns["t"] - columns["t"][0]
    pose = stacked(columns, ("px", "py", "pz", "qx", "qy", "qz", "qw"))
    variables = dict(_variable(*column) for column in columns.items())
    log = firmware.flight_log(name, [Table(time, variables)], Samples(time, pose))
    return replace(log, controller="mellinger" if "mell" in name else "pid")


def _variable(column: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the firmware's name of `block_group_name`, and the values in its unit."""
    name = column.partition("_")[2].replace("_", ".", 1)
    return name, np.degrees(values) if name.startswith("gyro.") else values
