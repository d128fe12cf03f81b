"""Quantities of a drone that can be plotted: its state, and the readings of its sensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import BatteryState, FluidPressure, Imu, MagneticField, NavSatFix, Range

from crazyflow_ros.scene.frames import body_to_world, rpy
from crazyflow_ros.view.frame import N_ROTORS, Frame


class Quantity(NamedTuple):
    """Some numbers of a drone over time."""

    labels: tuple[str, ...]
    """Labels with units, one for each number."""
    of: Callable[..., Any]
    """Returns the numbers, from a frame and a row, or from a message."""
    least: float = 0.0
    """Smallest range of the axis, up and down, so that it does not magnify the noise of a hover."""


def _position(frame: Frame, row: int) -> np.ndarray:
    return frame.position[row]


def _velocity(frame: Frame, row: int) -> np.ndarray:
    return body_to_world(frame.attitude[row], frame.velocity[row])


def _attitude(frame: Frame, row: int) -> np.ndarray:
    return np.rad2deg(rpy(frame.attitude[row]))


def _rotors(frame: Frame, row: int) -> np.ndarray:
    return frame.rotor_speed[row]


OF_STATE = {
    "position": Quantity(("x [m]", "y [m]", "z [m]"), _position),
    "velocity": Quantity(("x [m/s]", "y [m/s]", "z [m/s]"), _velocity, 0.1),
    "attitude": Quantity(("roll [°]", "pitch [°]", "yaw [°]"), _attitude, 1.0),
    "rotor speeds": Quantity(tuple(f"{n} [rad/s]" for n in range(N_ROTORS)), _rotors),
}
"""Quantities of the state, by name."""


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


OF_SENSORS = {
    Range: Quantity(("range [m]",), lambda m: (m.range,)),
    BatteryState: Quantity(
        ("voltage [V]", "current [A]", "charge [0-1]"),
        lambda m: (m.voltage, m.current, m.percentage),
    ),
    Imu: Quantity(("x [m/s²]", "y [m/s²]", "z [m/s²]"), lambda m: _xyz(m.linear_acceleration)),
    FluidPressure: Quantity(("pressure [Pa]",), lambda m: (m.fluid_pressure,)),
    MagneticField: Quantity(
        ("x [µT]", "y [µT]", "z [µT]"),  # an axis has three decimals
        lambda m: tuple(1e6 * value for value in _xyz(m.magnetic_field)),
    ),
    NavSatFix: Quantity(
        ("latitude [°]", "longitude [°]", "altitude [m]"),
        lambda m: (m.latitude, m.longitude, m.altitude),
    ),
    WrenchStamped: Quantity(("x [N]", "y [N]", "z [N]"), lambda m: _xyz(m.wrench.force)),
}
"""Quantities of sensors, by the type of their messages."""

KINDS = {f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}": kind for kind in OF_SENSORS}
"""Types of messages by their names."""
