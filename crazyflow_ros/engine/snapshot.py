"""The state of the drones at one tick, to be read by any thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.scene import MirrorState

SIZES = {"pos": 3, "quat": 4, "vel": 3, "ang_vel": 3, "rotor_angle": 4, "rotor_vel": 4}
"""The numbers that make up the state of a drone, with the units and frames of `MirrorState`."""

_LIMITS = {
    "pos": limits.POSITION,
    "vel": limits.VELOCITY,
    "ang_vel": limits.ANGULAR_VELOCITY,
    "rotor_angle": limits.ROTOR_ANGLE,
    "rotor_vel": limits.ROTOR_VELOCITY,
}


@dataclass(frozen=True)
class Snapshot(MirrorState):
    """State of all drones at one tick."""

    names: tuple[str, ...]
    """Of the M drones, in the order of the rows."""
    body_vel: np.ndarray
    """Velocity in body axes [m/s], shape (M, 3)."""
    specific_force: np.ndarray
    """What an accelerometer in the centre of mass reads, body axes [m/s^2], +g upwards at rest,
    shape (M, 3)."""
    contact: np.ndarray
    """What all contacts do to the centre of mass: force [N] and torque [N m], world axes, shape
    (M, 6)."""
    tick: int
    """Physics ticks, from 1 at the start. Goes on through a reset."""
    epoch: int
    """Resets so far."""
    battery: np.ndarray | None = None
    """Voltage under load [V], current [A] and charge drawn [A h] of the batteries, shape (M, 3);
    None without."""


@dataclass(frozen=True)
class DroneState:
    """What is to change in the state of one drone; None stays as it is."""

    pos: ArrayLike | None = None
    """(3,) centre of mass in the world [m]."""
    quat: ArrayLike | None = None
    """(4,) attitude xyzw; made a unit quaternion."""
    vel: ArrayLike | None = None
    """(3,) velocity in world axes [m/s]."""
    ang_vel: ArrayLike | None = None
    """(3,) angular velocity in body axes [rad/s]."""
    rotor_angle: ArrayLike | None = None
    """(4,) angles of the rotor joints [rad]."""
    rotor_vel: ArrayLike | None = None
    """(4,) speeds of the rotor joints [rad/s], positive in flight."""

    def checked(self, name: str) -> dict[str, np.ndarray]:
        """What is to change, as arrays.

        Args:
            name: Of the drone.

        Raises:
            ValueError: A shape is wrong, a number not finite or too large, or the attitude zero.
        """
        fields: dict[str, np.ndarray] = {}
        for key, value in vars(self).items():
            if value is None:
                continue
            what = f"{key} of {name}"
            if key == "quat":
                fields[key] = limits.unit_quaternion(what, value)
            else:
                fields[key] = limits.vector(what, value, (SIZES[key],), _LIMITS[key])
        return fields
