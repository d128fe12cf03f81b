"""Flights of the data set `Crazyflie-2.0-battery-data`: estimated position and voltage at 100 Hz.

R. Craciun, A. Burlacu, "AI-Based Battery Consumption Prediction for Nano-drones", MTM&Robotics
2024.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crazyflow_ros.flight_logs.flight_log import FlightLog, TimedValues

COLUMNS = frozenset(("x_estimate", "y_estimate", "z_estimate", "battery_voltage"))
"""Names by which the table is recognised."""
_PERIOD = 0.01  # s, between lines


def flight_log(name: str, table: Mapping[str, np.ndarray]) -> FlightLog:
    """Return the flight. Its poses are estimates of the drone, with a level attitude.

    Args:
        name: Name of the flight.
        table: Columns by name, each (n,).

    Raises:
        ValueError: A value is out of its limits.
    """
    time = _PERIOD * np.arange(len(table["battery_voltage"]))
    pose = np.zeros((len(time), 7))
    pose[:, :3] = np.stack([table[f"{axis}_estimate"] for axis in "xyz"], axis=1)
    pose[:, 6] = 1.0
    voltage = table["battery_voltage"][:, None]
    return FlightLog(
        name,
        pose=TimedValues(time, pose),
        voltage=TimedValues(time, voltage),
        pose_is_estimate=True,
    )
