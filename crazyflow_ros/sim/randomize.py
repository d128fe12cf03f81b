"""Ready-made stages for `Sim.reset_pipeline` that randomise each reset world.

Each function returns a stage. Random numbers come from `data.core.rng_key`; worlds that are not
reset remain unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import rotate_quat, split, stack
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.hanging import payload_of

_MATRICES = {"J", "drag_matrix", "mixing_matrix", "rpm2thrust", "rpm2torque", "rotor_dyn_coef"}

ResetStage = Callable[[SimData, SimData, Array | None], SimData]
"""A stage after a reset: a function of data, default data and the mask of the reset worlds."""


def randomize_pos(spread: ArrayLike) -> ResetStage:
    """Shift drones by up to `spread` [m], a number or one for each axis."""
    return _shift("pos", spread)


def randomize_vel(spread: ArrayLike) -> ResetStage:
    """Add up to `spread` [m/s] to velocities."""
    return _shift("vel", spread)


def randomize_ang_vel(spread: ArrayLike) -> ResetStage:
    """Add up to `spread` [rad/s, body frame] to angular velocities."""
    return _shift("ang_vel", spread)


def randomize_attitude(spread: ArrayLike) -> ResetStage:
    """Rotate drones by a rotation vector of up to `spread` [rad] in each component."""
    spread = _per_axis("attitude", spread)

    def attitude(data: SimData, _: SimData, mask: Array | None) -> SimData:
        data, noise = _uniform(data, data.states.pos.shape)
        rotvec = noise * jnp.asarray(spread, noise.dtype)
        turned = rotate_quat(split(data.states.quat), split(rotvec))  # type: ignore[arg-type]
        quat = _where(mask, stack(turned), data.states.quat)
        return data.replace(states=data.states.replace(quat=quat))

    return attitude


def randomize_mass(spread: float) -> ResetStage:
    """Multiply each drone's mass by 1 ± `spread`. Its controller uses the nominal mass."""
    return _scale("mass", spread)


def randomize_inertia(spread: float) -> ResetStage:
    """Multiply each drone's inertia by 1 ± `spread`."""
    return _scale("J", spread)


def randomize_param(name: str, spread: float) -> ResetStage:
    """Multiply any parameter of `data.params` by 1 ± `spread`, one factor per drone.

    Raises:
        ValueError: No dynamics have such a parameter, or it is computed from another one.
    """
    known = {f.name for model in Dynamics for f in fields(model.params)} - {"J_inv", "obstacles"}
    if name not in known:
        raise ValueError(unknown("parameter to randomise", name, sorted(known)))
    return _scale(name, spread)


def randomize_payload(name: str, spread: float) -> ResetStage:
    """Multiply a figure of the payload by 1 ± `spread`, one factor for each load or cable.

    Where lengths change, let the stage `hang_payload` follow.

    Args:
        name: mass, length, stiffness, damping or drag_area.
        spread: From 0 to less than 1.

    Raises:
        ValueError: There is no such figure, or the spread is out of range.
    """
    figures = ("mass", "length", "stiffness", "damping", "drag_area")
    if name not in figures:
        raise ValueError(unknown("figure of the payload to randomise", name, figures))
    _check_spread(name, spread)

    def scale(data: SimData, default_data: SimData, mask: Array | None) -> SimData:
        payload = payload_of(data)
        now, nominal = getattr(payload, name), getattr(payload_of(default_data), name)
        data, noise = _uniform(data, now.shape)
        new = _where(mask, nominal * (1 + spread * noise), now)
        return data.replace(payload=payload.replace(**{name: new}))

    return scale


def _per_axis(field: str, spread: ArrayLike) -> np.ndarray:
    """Return the spread of a vector.

    Raises:
        ValueError: The spread is not finite, or neither one number nor three.
    """
    array = np.asarray(spread, float)
    if array.shape not in ((), (1,), (3,)) or not np.isfinite(array).all():
        raise ValueError(f"the spread of {field} is one or three finite numbers, got {spread}")
    return array


def _shift(field: str, spread: ArrayLike) -> ResetStage:
    spread = _per_axis(field, spread)

    def shift(data: SimData, _: SimData, mask: Array | None) -> SimData:
        now = getattr(data.states, field)
        data, noise = _uniform(data, now.shape)
        new = _where(mask, now + noise * jnp.asarray(spread, now.dtype), now)
        return data.replace(states=data.states.replace(**{field: new}))

    return shift


def _scale(name: str, spread: float) -> ResetStage:
    _check_spread(name, spread)

    def scale(data: SimData, default_data: SimData, mask: Array | None) -> SimData:
        if not hasattr(data.params, name):
            raise ValueError(f"the dynamics have no {name} to randomise")
        now = getattr(data.params, name)
        nominal = getattr(default_data.params, name)
        core_ndim = 2 if name in _MATRICES else 1
        data, noise = _uniform(data, (data.core.n_worlds, data.core.n_drones))
        factor = (1 + spread * noise).reshape(*noise.shape, *[1] * core_ndim)
        changes = {name: _where(mask, nominal * factor, now)}
        if name == "J":
            inverse = default_data.params.J_inv / factor
            changes["J_inv"] = _where(mask, inverse, data.params.J_inv)
        return data.replace(params=data.params.replace(**changes))

    return scale


def _check_spread(name: str, spread: float) -> None:
    if np.ndim(spread) or not 0 <= spread < 1:
        raise ValueError(f"the spread of {name} is from 0 to less than 1, got {spread}")


def _uniform(data: SimData, shape: tuple[int, ...]) -> tuple[SimData, Array]:
    """Return random numbers from -1 to 1, and data with a new key."""
    key, subkey = jax.random.split(data.core.rng_key)
    noise = jax.random.uniform(subkey, shape, data.states.pos.dtype, -1, 1)
    return data.replace(core=data.core.replace(rng_key=key)), noise


def _where(mask: Array | None, new: Array, now: Array) -> Array:
    """Return `new` in the worlds of the mask, `now` in the others."""
    if mask is None:
        return new
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, now)
