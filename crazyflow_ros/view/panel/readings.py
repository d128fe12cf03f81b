"""Readings of sensors in a line of text each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import (
    BatteryState,
    FluidPressure,
    Imu,
    LaserScan,
    MagneticField,
    NavSatFix,
    PointCloud2,
    Range,
)
from std_msgs.msg import Bool

from crazyflow_ros.view.sensor_drawings import cloud_points, scan_points


def _vector(vector: Any, unit: str, factor: float = 1.0, digits: int = 2) -> str:
    numbers = (f"{factor * value:z.{digits}f}" for value in (vector.x, vector.y, vector.z))
    return f"{', '.join(numbers)} {unit}"


def _range(message: Range) -> str:
    if math.isfinite(message.range):
        return f"{message.range:.3f} m"
    return f"nothing within {message.max_range:g} m"


def _nearest(points: np.ndarray, what: str) -> str:
    if not len(points):
        return f"0 {what}"
    return f"{len(points)} {what}, nearest {np.linalg.norm(points, axis=1).min():.2f} m"


def _imu(message: Imu) -> str:
    turn = _vector(message.angular_velocity, "rad/s")
    return f"{_vector(message.linear_acceleration, 'm/s²')}; {turn}"


def _wrench(message: WrenchStamped) -> str:
    torque = _vector(message.wrench.torque, "mN·m", 1e3)
    return f"{_vector(message.wrench.force, 'N')}; {torque}"


def _battery(message: BatteryState) -> str:
    return f"{message.voltage:.2f} V, {message.current:.2f} A, {message.percentage:.0%}"


def _place(message: NavSatFix) -> str:
    return f"{message.latitude:.6f}°, {message.longitude:.6f}°, {message.altitude:.1f} m"


TEXTS: dict[Any, Callable[[Any], str]] = {
    Range: _range,
    BatteryState: _battery,
    Imu: _imu,
    FluidPressure: lambda m: f"{m.fluid_pressure / 100:.2f} hPa",
    MagneticField: lambda m: _vector(m.magnetic_field, "µT", 1e6),
    NavSatFix: _place,
    WrenchStamped: _wrench,
    LaserScan: lambda m: _nearest(scan_points(m), f"of {len(m.ranges)} beams hit"),
    PointCloud2: lambda m: _nearest(cloud_points(m), "points"),
    TwistStamped: lambda m: _vector(m.twist.angular, "rad/s"),
    PoseStamped: lambda m: _vector(m.pose.position, "m", digits=3),
    Bool: lambda m: "yes" if m.data else "no",
}
"""Returns the text of a message, by its type."""
