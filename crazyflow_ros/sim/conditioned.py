"""Parameters of drones and controllers under the conditions of a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jax import Array

from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.scene.conditions import AIR, GRAVITY, STANDARD, Conditions
from crazyflow_ros.xla.on_device import on_device

if TYPE_CHECKING:
    from pathlib import Path

_BY_AIR = ("rpm2thrust", "rpm2torque", "drag_matrix", "rotor_moment")
_GRAVITY = "gravity_vec"


def conditions_in(scene: str | Path) -> Conditions:
    """Return the conditions in a scene, see `build_spec`.

    Raises:
        ValueError: The scene does not exist, or is refused.
    """
    if scene == "floor":  # most users of `Sim` need no MuJoCo
        return STANDARD
    from crazyflow_ros.scene.assembly import read_scene

    return read_scene(scene).conditions[0]


def conditioned(params: RigidBody, conditions: Conditions, *, has_rotors: bool) -> RigidBody:
    """Return the parameters of drones under some conditions; wind is left out.

    Thrust, torque and drag of rotors are proportional to the density of the air.

    Args:
        params: Parameters under standard conditions.
        conditions: Gravity, air and floor.
        has_rotors: Whether the model computes thrust from the speeds of rotors.
    """
    changes: dict[str, Any] = {}
    if conditions.gravity != GRAVITY:
        changes[_GRAVITY] = _like(params.gravity_vec, conditions.gravity)
    if conditions.density != AIR and has_rotors:
        known = {name: getattr(params, name, None) for name in _BY_AIR}
        changes |= {
            k: _like(v, conditions.air * np.asarray(v)) for k, v in known.items() if v is not None
        }
    if conditions.floor != 0:
        changes["floor"] = _like(params.mass, conditions.ground)
    return params.replace(**changes) if changes else params


def balancing(figures: dict[str, Array], conditions: Conditions) -> dict[str, Array]:
    """Return the parameters of a position controller that balances the gravity there, if it can."""
    if conditions.gravity == GRAVITY or _GRAVITY not in figures:
        return figures
    return figures | {_GRAVITY: _like(figures[_GRAVITY], conditions.balanced)}


def hover_thrust(params: RigidBody, conditions: Conditions, *, has_rotors: bool) -> Array:
    """Return the commanded thrust [N] that balances gravity; see `RigidBody.hover_thrust`.

    Rotors that are commanded a thrust turn as for standard air.
    """
    if conditions.gravity != GRAVITY:
        params = params.replace(gravity_vec=_like(params.gravity_vec, conditions.balanced))
    thrust = params.hover_thrust
    return thrust / conditions.air if conditions.density != AIR and has_rotors else thrust


def _like(array: Array, values: Any) -> Array:
    return on_device(np.broadcast_to(np.asarray(values, float), array.shape))
