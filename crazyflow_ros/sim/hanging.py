"""Loads that hang below the drones of a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics import Dynamics, SlungLoad
from crazyflow_ros.dynamics.components import rotation_matrix, split, stack, transform, vector
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.sim.arguments import check_payload
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.payload import Payload


def carrying(
    data: SimData,
    payload: SlungLoad | None,
    dynamics: Dynamics,
    integrator: Integrator,
    forces: Sequence[External] | None,
) -> SimData:
    """Return the data of drones that carry a payload; without one, the data as they are.

    Args:
        data: Data of drones that carry nothing.
        payload: The payload of each world, which hangs below the drones or lies on the floor.
        dynamics: The model.
        integrator: The integrator. Drones that carry something advance by symplectic Euler.
        forces: External forces; the floor stops loads if it is one, or if this is None.

    Raises:
        ValueError: The drones cannot carry it.
    """
    if payload is None:
        return data
    check_payload(payload, dynamics, integrator)
    has_floor = forces is None or "floor_contact" in (getattr(x, "name", "") for x in forces)
    loads = Payload.create(payload, data.core.n_worlds, data.core.n_drones, has_floor)
    return hang_payload(data.replace(payload=loads))


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
