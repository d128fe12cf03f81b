"""Flights of NanoBench: one table with the firmware's log and Vicon, resampled at 100 Hz.

NanoBench, arXiv 2603.09908.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs.flight_log import FlightLog, Samples

COLUMNS = frozenset(("t", "px", "qx", "motor_motor_m1", "sp_ctrltarget_x", "pwr_pm_vbat"))
"""Names by which the table is recognised."""
_GRAVITY = 9.81  # m/s^2, of the accelerometer's unit
_PWM_MAX = 65535.0


def flight_log(name: str, table: Mapping[str, np.ndarray]) -> FlightLog:
    """Return the flight.

    Args:
        name: Name of the flight, which tells the controller: Mellinger's have `mell` in it.
        table: Columns by name, each (n,).

    Raises:
        ValueError: A column is missing, or a value is out of its limits.
    """

    def columns(*names: str) -> np.ndarray:
        if missing := [name for name in names if name not in table]:
            raise ValueError(f"{name}: there is no column {', '.join(missing)}")
        return np.stack([table[name] for name in names], axis=1)

    def samples(values: np.ndarray, chosen: Any = slice(None)) -> Samples:
        return Samples(time[chosen], values[chosen])

    time = columns("t")[:, 0] - table["t"][0]
    target = columns(*(f"sp_ctrltarget_{axis}" for axis in ("x", "y", "z", "yaw")))
    setpoint = np.zeros((len(time), 16))
    setpoint[:, :3] = target[:, :3]
    setpoint[:, 9:13] = Rotation.from_euler("z", target[:, 3:], degrees=True).as_quat()
    axes = "xyz"
    parts = ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz")
    estimate = columns(*(f"{'att' if p[0] == 'q' else 'est'}_stateEstimate_{p}" for p in parts))
    is_known = np.linalg.norm(estimate[:, 3:7], axis=1) > 0.5
    is_commanded = target[:, 2] > 0  # zeros are from before the first setpoint
    pwm = columns(*(f"motor_motor_m{i}" for i in (1, 2, 3, 4)))
    return FlightLog(
        name,
        pose=samples(columns("px", "py", "pz", "qx", "qy", "qz", "qw")),
        setpoint=samples(setpoint, is_commanded) if is_commanded.any() else None,
        gyro=samples(columns(*(f"imu_gyro_{a}" for a in axes))),
        accelerometer=samples(_GRAVITY * columns(*(f"imu_acc_{a}" for a in axes))),
        pwm=samples(pwm, (pwm <= _PWM_MAX).all(axis=1)),
        voltage=samples(columns("pwr_pm_vbat")),
        estimate=samples(estimate, is_known) if is_known.any() else None,
        controller="mellinger" if "mell" in name else "pid",
    )
