"""The state of the drones at one tick, readable by any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.scene import MirrorState

SIZES = {"pos": 3, "quat": 4, "vel": 3, "ang_vel": 3, "rotor_angle": 4, "rotor_vel": 4}
"""Sizes of the fields of a quadrotor's state, with the units and frames of `MirrorState`."""


def sizes_of(n_rotors: int) -> dict[str, int]:
    """Return `SIZES` of drones with another number of rotors."""
    return SIZES | dict.fromkeys(("rotor_angle", "rotor_vel"), n_rotors)


Fields = Mapping[str, np.ndarray]
"""Some of these fields, one row per drone."""

_LIMITS = {
    "pos": limits.POSITION,
    "vel": limits.VELOCITY,
    "ang_vel": limits.ANGULAR_VELOCITY,
    "rotor_angle": limits.ROTOR_ANGLE,
    "rotor_vel": limits.ROTOR_VELOCITY,
}


class Believed(NamedTuple):
    """Estimates of the states of all drones."""

    pos: np.ndarray
    """(M, 3) m."""
    quat: np.ndarray
    """(M, 4) xyzw."""
    vel: np.ndarray
    """(M, 3) m/s, world frame."""
    variances: np.ndarray
    """(M, 9) variances of position [m], velocity [m/s] and attitude [rad], the latter two in body
    axes."""
    deck: np.ndarray
    """(M, 4) latest readings of the decks below, see `Estimate.deck`."""


@dataclass(frozen=True)
class Snapshot(MirrorState):
    """State of all drones at one tick."""

    names: tuple[str, ...]
    """Names of the M drones, in the order of the rows."""
    body_vel: np.ndarray
    """Velocity in body axes [m/s], shape (M, 3)."""
    specific_force: np.ndarray
    """Reading of an accelerometer at the centre of mass, body axes [m/s^2], +g upwards at rest,
    shape (M, 3)."""
    contact: np.ndarray
    """Wrench of all contacts on the centre of mass: force [N] and torque [N m], world axes, shape
    (M, 6)."""
    impact: np.ndarray
    """Largest force of contacts along an axis of the world in the ticks since the previous snapshot
    [N], shape (M,); 0 with the integrator rk4."""
    tick: int
    """Physics ticks, from 1 at the start. Continues through a reset."""
    epoch: int
    """Number of resets so far."""
    battery: np.ndarray | None = None
    """Voltage under load [V], current [A] and charge drawn [A h] of the batteries, shape (M, 3);
    None without batteries."""
    believed: Believed | None = None
    """The estimates of the state; None where drones know the true state."""
    heard: np.ndarray | None = None
    """What the filters heard of base stations and radio anchors, shape (M, k), see
    `estimation.beacons.columns`; None without them."""
    desired: np.ndarray | None = None
    """Desired values of the controllers, shape (M, 14): roll, pitch, yaw [rad] and collective
    thrust [N] of the position controllers, or the commanded attitude; body rates [rad/s], thrust
    [N] and torque [N m] of the attitude controllers; integral of the position error [m s], of
    Mellinger's controller. None without position controllers."""

    def of(self, rows: np.ndarray) -> Snapshot:
        """Return the state of the drones in some rows, in that order."""
        values = vars(self)
        arrays = {name: x[rows] for name, x in values.items() if isinstance(x, np.ndarray)}
        believed = self.believed and Believed(*(x[rows] for x in self.believed))
        names = tuple(self.names[row] for row in rows)
        return Snapshot(**values | arrays | {"names": names, "believed": believed})

    @property
    def known(self) -> MirrorState | Believed:
        """What the drones know of their state: the estimates, or else the true state."""
        return self if self.believed is None else self.believed


@dataclass(frozen=True)
class DroneState:
    """Changes of the state of one drone; None leaves a field unchanged."""

    pos: ArrayLike | None = None
    """(3,) centre of mass in the world [m]."""
    quat: ArrayLike | None = None
    """(4,) attitude xyzw; normalised to a unit quaternion."""
    vel: ArrayLike | None = None
    """(3,) velocity in world axes [m/s]."""
    ang_vel: ArrayLike | None = None
    """(3,) angular velocity in body axes [rad/s]."""
    rotor_angle: ArrayLike | None = None
    """(n,) angles of the n rotor joints [rad]."""
    rotor_vel: ArrayLike | None = None
    """(n,) speeds of the rotor joints [rad/s], positive in flight."""

    def checked(self, name: str, n_rotors: int = QUADROTOR) -> dict[str, np.ndarray]:
        """Return the changes as arrays.

        Args:
            name: Name of the drone.
            n_rotors: Its number of rotors.

        Raises:
            ValueError: A shape is wrong, a number is not finite or too large, or the quaternion is
                zero.
        """
        fields, sizes = dict[str, np.ndarray](), sizes_of(n_rotors)
        for key, value in vars(self).items():
            if value is None:
                continue
            what = f"{key} of {name}"
            if key == "quat":
                fields[key] = limits.unit_quaternion(what, value)
            else:
                fields[key] = limits.vector(what, value, (sizes[key],), _LIMITS[key])
        return fields
