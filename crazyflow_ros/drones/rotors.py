"""The rotors of a drone: where they are, where they push, which way they turn, what they give.

A quadrotor needs only `L` in its `drone.toml`: its rotors sit in a square, see `common.toml`. Other
drones have a table `[[rotor]]` for each rotor, in the order of all commands and states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crazyflow_ros.checks.limits import shown

QUADROTOR = 4
"""Rotors of a drone without tables."""
MOST = 16
"""Largest number of rotors."""

_Z = np.array([0.0, 0.0, 1.0])
_LEAST = 1e-6  # of a full rank; below, thrust or a torque cannot be given


@dataclass(frozen=True, eq=False)
class Rotors:
    """The rotors of a drone; arrays have one row for each."""

    position: np.ndarray
    """(n, 3) m, from the centre of mass, body frame."""
    axis: np.ndarray
    """(n, 3) unit vectors along the thrust, body frame."""
    spin: np.ndarray
    """(n,) 1 for rotors that turn counter-clockwise seen from the tip of their axis, else -1."""
    rpm2thrust: np.ndarray
    """(n, 3) thrust in N as a polynomial in RPM."""
    rpm2torque: np.ndarray
    """(n, 3) drag torque in N m as a polynomial in RPM."""
    rotor_dyn_coef: np.ndarray
    """(n, 4) coefficients of rise and fall, see `first_principles.Params`."""
    prop_inertia: np.ndarray
    """(n,) kg m^2, about the axis."""
    vel_limits: np.ndarray
    """(2,) RPM, of a turning rotor."""
    idle: float
    """RPM of rotors that are armed."""
    has_tables: bool
    """Whether the drone has tables of its rotors."""

    def __len__(self) -> int:
        return len(self.spin)

    @cached_property
    def thrust_limits(self) -> np.ndarray:
        """(2, n) N, at the limits of the speed."""
        return np.stack([_thrust(self.rpm2thrust, speed) for speed in self.vel_limits])

    @cached_property
    def places(self) -> np.ndarray:
        """(k, 2) m, where rotors are seen from above; rotors above one another share one."""
        return np.unique(self.position[:, :2].round(6), axis=0)

    @cached_property
    def wrench(self) -> np.ndarray:
        """(6, n) force [N] and torque [N m] for each newton of a rotor's thrust, body frame.

        The torque is r x f and the drag torque, which opposes the spin, at half of the greatest
        thrust.
        """
        thrust = self.thrust_limits[1] / 2
        drag = _thrust(self.rpm2torque, _speed(self.rpm2thrust, thrust)) / thrust
        torque = np.cross(self.position, self.axis) - (self.spin * drag)[:, None] * self.axis
        return np.concatenate([self.axis, torque], axis=1).T

    @cached_property
    def allocation(self) -> np.ndarray:
        """(n, 4) thrust of each rotor for 1 N along z and 1 N m about x, y and z.

        This is the inverse of `wrench` with the least sum of squares of the thrusts, each divided
        by the rotor's greatest, so rotors that are alike but for their thrust turn equally fast.

        Where the rotors can also push sideways, the sideways forces of the solution are zero.

        Raises:
            ValueError: The rotors cannot give thrust and torque about all axes independently.
        """
        sideways = np.linalg.matrix_rank(self._scaled, tol=_LEAST) == len(self.wrench)
        rows = [2, 3, 4, 5, *([0, 1] if sideways else [])]
        if not sideways and np.linalg.matrix_rank(self._scaled[rows], tol=_LEAST) < len(rows):
            raise ValueError(
                "rotors must be able to give thrust and torque about each axis independently"
            )
        root = np.sqrt(self.thrust_limits[1])[:, None]
        return (root * np.linalg.pinv(self.wrench[rows] * root.T))[:, :4]

    @property
    def _scaled(self) -> np.ndarray:
        """`wrench` with torques as shares of the greatest."""
        force, torque = np.split(self.wrench, 2)
        largest = np.abs(torque).max(axis=1, keepdims=True)
        return np.concatenate([force, torque / np.maximum(largest, 1e-12)])

    @property
    def idle_thrust(self) -> np.ndarray:
        """(n,) N, of rotors that are armed."""
        return _thrust(self.rpm2thrust, self.idle)

    @property
    def most_thrust(self) -> float:
        """N, greatest thrust along z without torque."""
        share = self.allocation[:, 0]
        bearing = share > _LEAST
        return float((self.thrust_limits[1, bearing] / share[bearing]).min())

    def hover_speeds(self, weight: float) -> np.ndarray:
        """Return the speeds (n,) [RPM] that carry a weight [N] without torque."""
        return _speed(self.rpm2thrust, self.allocation[:, 0] * weight)

    def mixing(self, distance: float) -> np.ndarray:
        """Return `mixing_matrix` (3, n): y and -x as multiples of a distance [m], and -spin."""
        x, y = self.position[:, 0] / distance, self.position[:, 1] / distance
        return np.stack([y, -x, -self.spin])

    def tilt(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return what tilted rotors have beyond `mixing`; None if all push along z.

        Returns:
            (n, 3) what the axes have beyond z, and (n, 3) m, what the torque of each newton has
            beyond (y, -x, 0).
        """
        beyond = self.axis - _Z
        if not beyond.any():
            return None
        return beyond, np.cross(self.position, beyond)

    def as_quadrotor(self) -> dict[str, Any]:
        """Return the figures of the quadrotor that flies most like the drone.

        At the same speeds its rotors have the same thrust, torque and momentum in all, and their
        distances from the axes have the same mean square. Whatever needs only these, such as the
        firmware's controllers and the planner, computes with a quadrotor.
        """
        quarter, up = 1 / QUADROTOR, self.axis[:, 2:]
        share = self.allocation[:, 0]
        bearing = share > _LEAST
        least = self.thrust_limits[0, bearing] / share[bearing]
        idle = self.idle_thrust[bearing] / share[bearing]
        return {
            "L": float(np.sqrt(np.square(self.position[:, :2]).sum() / (2 * len(self)))),
            "thrust_min": quarter * float(least.max()),
            "thrust_max": quarter * self.most_thrust,
            "idle_thrust": quarter * float(idle.max()),
            "rpm2thrust": quarter * (self.rpm2thrust * up).sum(axis=0),
            "rpm2torque": quarter * self.rpm2torque.sum(axis=0),
            "prop_inertia": quarter * float(self.prop_inertia.sum()),
            "rotor_dyn_coef": self.rotor_dyn_coef.mean(axis=0),
        }


def quadrotor(figures: Mapping[str, Any], mixing: np.ndarray) -> Rotors:
    """Return the rotors of a drone without tables.

    Args:
        figures: All figures of the drone.
        mixing: (3, 4) signs of the rotors in roll, pitch and yaw.
    """
    # Thrust f at (x, y) produces the torque (y f, -x f).
    x, y = -mixing[1] * figures["L"], mixing[0] * figures["L"]
    height = np.full(QUADROTOR, figures["geometry"]["rotor_z"])
    return _rotors(figures, np.stack([x, y, height], axis=1), -mixing[2], [{}] * QUADROTOR)


def tabled(figures: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> Rotors:
    """Return the rotors of a drone with tables.

    Raises:
        ValueError: Rotors cannot lift the drone, or turn it about each axis.
    """
    position = np.array([table["position"] for table in tables])
    spin = np.array([table["spin"] for table in tables])
    rotors = _rotors(figures, position, spin, tables)
    if (rotors.allocation[:, 0] < -_LEAST).any():
        worst = int(np.argmin(rotors.allocation[:, 0]))
        raise ValueError(f"rotor {worst} would have to push downwards to hover without torque")
    return rotors


def of_table(rotor: int, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with an axis of norm 1.

    Raises:
        ValueError: The axis is zero, or the spin neither 1 nor -1.
    """
    axis = np.asarray(table.get("axis", _Z))
    if not (norm := np.linalg.norm(axis)) > _LEAST:
        raise ValueError(f"rotor[{rotor}].axis must have a direction, got {shown(axis)}")
    if abs(table["spin"]) != 1:
        raise ValueError(f"rotor[{rotor}].spin must be 1 or -1, got {shown(table['spin'])}")
    return {**table, "axis": axis / norm}


def _rotors(
    figures: Mapping[str, Any],
    position: np.ndarray,
    spin: np.ndarray,
    tables: Sequence[Mapping[str, Any]],
) -> Rotors:
    def of_each(name: str) -> np.ndarray:
        return np.array([table.get(name, figures[name]) for table in tables])

    shared = np.asarray(figures["rpm2thrust"])
    idle = figures.get("idle_thrust", figures["thrust_min"])
    limits = np.array([figures["thrust_min"], figures["thrust_max"]])
    return Rotors(
        position=position,
        axis=np.array([table.get("axis", _Z) for table in tables]),
        spin=spin,
        **{k: of_each(k) for k in ("rpm2thrust", "rpm2torque", "rotor_dyn_coef", "prop_inertia")},
        vel_limits=_speed(shared, limits),
        idle=float(_speed(shared, np.array(idle))),
        has_tables=any(tables),
    )


def _thrust(curve: np.ndarray, speed: np.ndarray | float) -> np.ndarray:
    """Return the values of polynomials (..., 3) at speeds."""
    result: np.ndarray = curve[..., 0] + speed * (curve[..., 1] + speed * curve[..., 2])
    return result


def _speed(curve: np.ndarray, thrust: np.ndarray) -> np.ndarray:
    """Return the speeds [RPM] at which polynomials (..., 3) reach a thrust [N]."""
    k0, k1, k2 = np.moveaxis(curve, -1, 0)
    result: np.ndarray = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - thrust))) / (2 * k2)
    return result
