"""The slung load of each world, as part of a simulation's data.

Shapes: N worlds, M drones per world. Arrays of a world have the size 1 in place of its drones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import (
    rotation_matrix,
    split,
    stack,
    transform,
    vector,
)
from crazyflow_ros.dynamics.slung_load import Load, Pull, SlungLoad, moved
from crazyflow_ros.xla.on_device import on_device
from crazyflow_ros.xla.struct import Struct, static_field

if TYPE_CHECKING:
    from crazyflow_ros.sim.data import SimData


class Payload(Struct):
    """Loads and cables; see `SlungLoad` for the figures, which may differ between worlds."""

    pos: Array
    """(N, 1, 3) of the load, world frame, m."""
    vel: Array
    """(N, 1, 3) of the load, world frame, m/s."""
    tension: Array
    """(N, M, 1) of the cables in the last tick, N."""
    mass: Array
    """(N, 1, 1) kg."""
    drag_area: Array
    """(N, 1, 1) m^2."""
    length: Array
    """(N, M, 1) m."""
    stiffness: Array
    """(N, M, 1) N/m."""
    damping: Array
    """(N, M, 1) N s/m."""
    attachment: Array | None
    """(N, M, 3) body frame, m; None for the centre of mass."""
    has_floor: bool = static_field()
    """Whether the floor z = 0 stops the loads."""

    @staticmethod
    def create(load: SlungLoad, n_worlds: int, n_drones: int, has_floor: bool) -> Payload:
        """Return loads at the origin."""

        def array(world: np.ndarray) -> Array:
            return on_device(np.tile(world, (n_worlds, 1, 1)))

        state = {"pos": (1, 3), "vel": (1, 3), "tension": (n_drones, 1)}
        arrays = {name: np.zeros(shape) for name, shape in state.items()} | load.figures(n_drones)
        leaves: dict[str, Any] = {"attachment": None} | {k: array(v) for k, v in arrays.items()}
        return Payload(**leaves, has_floor=has_floor)

    @property
    def load(self) -> Load:
        """The loads as component arrays, (N, 1), and their cables, (N, M)."""
        point = None if self.attachment is None else vector(self.attachment)
        names = ("mass", "drag_area", "length", "stiffness", "damping")
        figures = {name: getattr(self, name)[..., 0] for name in names}
        return Load(vector(self.pos), vector(self.vel), **figures, attachment=point)

    def after_tick(self, load: Load, cables: Pull, dt: float) -> Payload:
        """Return the loads after a tick of `dt` seconds in which the cables pulled them."""
        pos, vel = moved(load, cables.vel, dt, has_floor=self.has_floor)
        return self.replace(pos=stack(pos), vel=stack(vel), tension=cables.tension[..., None])


def hang_payload(
    data: SimData, default_data: SimData | None = None, mask: Array | None = None
) -> SimData:
    """Return data whose loads hang below their drones; also a stage of `Sim.reset_pipeline`.

    A load is below the middle of its drones, as low as the cables allow, but not below the floor.
    It moves with the mean velocity of the drones.

    Args:
        data: Data of a simulation with a payload.
        default_data: Not used.
        mask: (N,) bool, the worlds whose loads move; None for all.

    Raises:
        ValueError: There is no payload.
    """
    del default_data
    payload, states = payload_of(data), data.states
    anchor = states.pos
    if payload.attachment is not None:
        turn = rotation_matrix(split(states.quat))  # type: ignore[arg-type]
        anchor = anchor + stack(transform(turn, vector(payload.attachment)))
    middle = anchor.mean(axis=1, keepdims=True)
    aside = ((anchor - middle)[..., :2] ** 2).sum(axis=-1)
    depth = jnp.sqrt(jnp.maximum(payload.length[..., 0] ** 2 - aside, 0))
    low = (anchor[..., 2] - depth).max(axis=1)[:, None]
    if payload.has_floor:
        low = jnp.maximum(low, 0)
    pos = jnp.concatenate([middle[..., :2], low[..., None]], axis=-1)
    vel = states.vel.mean(axis=1, keepdims=True)
    still = jnp.zeros_like(payload.tension)
    new = {"pos": pos, "vel": vel, "tension": still}
    if mask is not None:
        worlds = mask[:, None, None]
        new = {name: jnp.where(worlds, x, getattr(payload, name)) for name, x in new.items()}
    return data.replace(payload=payload.replace(**new))


def load_motion(data: SimData) -> dict[str, Array]:
    """Return `load` and `load_vel` of a `policy.Motion`, (N, M, 3); nothing without a payload."""
    if data.payload is None:
        return {}
    shape = data.states.pos.shape
    motion = {"load": data.payload.pos, "load_vel": data.payload.vel}
    return {name: jnp.broadcast_to(x, shape) for name, x in motion.items()}


def payload_of(data: SimData) -> Payload:
    """Return the payload.

    Raises:
        ValueError: There is none.
    """
    if data.payload is None:
        raise ValueError("this simulation has no payload, see Sim(payload=SlungLoad(...))")
    return data.payload
