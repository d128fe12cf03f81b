"""Quantities that can be plotted: state and setpoint of a drone, all drones, sensor readings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import BatteryState, FluidPressure, Imu, MagneticField, NavSatFix, Range

from crazyflow_ros.ros.messages import type_name, xyz
from crazyflow_ros.scene.frames import body_to_world, rpy
from crazyflow_ros.view.frame import Frame


class Quantity(NamedTuple):
    """Some numbers of a drone over time."""

    labels: tuple[str, ...]
    """Labels with units, one for each number; none for the rotors, see `labels_of`."""
    of: Callable[..., Any]
    """Returns the numbers, from a frame, a row and the setpoint, or from a message."""
    least: float = 0.0
    """Smallest range of the axis, up and down, so that it does not magnify the noise of a hover."""
    setpoint: tuple[int, ...] = ()
    """For each of the last numbers, which are setpoints, the number that should reach it."""


class QuantityOfAll(NamedTuple):
    """One number of each drone over time."""

    unit: str
    of: Callable[[SwarmFrame], np.ndarray]
    """Returns the numbers, shape (M,)."""
    needs_plans: bool = False


class SwarmFrame(NamedTuple):
    """All drones at one time."""

    frame: Frame
    setpoint: np.ndarray
    """Places and headings where they should be, NaN where there is none, shape (M, 4)."""
    charge: np.ndarray
    """Of their batteries from 0 to 1, NaN where there is none, shape (M,)."""


def _attitude(frame: Frame, row: int, setpoint: np.ndarray) -> np.ndarray:
    heading = (np.rad2deg(setpoint[3]) + 180) % 360 - 180  # as yaw is
    return np.append(np.rad2deg(rpy(frame.attitude[row])), heading)


OF_STATE = {
    "position": Quantity(
        ("x [m]", "y [m]", "z [m]", "x set [m]", "y set [m]", "z set [m]"),
        lambda frame, row, setpoint: np.concatenate([frame.position[row], setpoint[:3]]),
        setpoint=(0, 1, 2),
    ),
    "velocity": Quantity(
        ("x [m/s]", "y [m/s]", "z [m/s]"),
        lambda frame, row, _: body_to_world(frame.attitude[row], frame.velocity[row]),
        0.1,
    ),
    "attitude": Quantity(
        ("roll [°]", "pitch [°]", "yaw [°]", "yaw set [°]"), _attitude, 1.0, setpoint=(2,)
    ),
    "rotor speeds": Quantity((), lambda frame, row, _: frame.rotor_speed[row]),
}
"""Quantities of the state of a drone, by name."""


def labels_of(quantity: Quantity, frame: Frame) -> tuple[str, ...]:
    """Return the labels of a quantity of drones that have some number of rotors."""
    return quantity.labels or tuple(f"{n} [rad/s]" for n in range(frame.rotor_speed.shape[1]))


OF_ALL = {
    "errors of all": QuantityOfAll(
        "m",
        lambda swarm: np.linalg.norm(swarm.frame.position - swarm.setpoint[:, :3], axis=1),
        needs_plans=True,
    ),
    "heights of all": QuantityOfAll("m", lambda swarm: swarm.frame.position[:, 2]),
    "batteries of all": QuantityOfAll("%", lambda swarm: 100 * swarm.charge),
}
"""Quantities of all drones, by name. The error is the distance from the setpoint."""


OF_SENSORS = {
    Range: Quantity(("range [m]",), lambda m: (m.range,)),
    BatteryState: Quantity(
        ("voltage [V]", "current [A]", "charge [0-1]"),
        lambda m: (m.voltage, m.current, m.percentage),
    ),
    Imu: Quantity(("x [m/s²]", "y [m/s²]", "z [m/s²]"), lambda m: xyz(m.linear_acceleration)),
    FluidPressure: Quantity(("pressure [Pa]",), lambda m: (m.fluid_pressure,)),
    MagneticField: Quantity(
        ("x [µT]", "y [µT]", "z [µT]"),  # an axis has three decimals
        lambda m: tuple(1e6 * value for value in xyz(m.magnetic_field)),
    ),
    NavSatFix: Quantity(
        ("latitude [°]", "longitude [°]", "altitude [m]"),
        lambda m: (m.latitude, m.longitude, m.altitude),
    ),
    WrenchStamped: Quantity(("x [N]", "y [N]", "z [N]"), lambda m: xyz(m.wrench.force)),
}
"""Quantities of sensors, by the type of their messages."""

KINDS = {type_name(kind): kind for kind in OF_SENSORS}
"""Message types by name."""
