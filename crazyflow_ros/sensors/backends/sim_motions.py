"""Velocities of what the drones of a `Sim` carry."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.sim.data import SimData


def carriers(model: mujoco.MjModel, n_drones: int, bodies: np.ndarray) -> np.ndarray:
    """Return the numbers of the drones that bodies are part of, -1 for none."""
    place = np.full(model.nbody, -1)
    place[[model.body(f"drone:{i}").id for i in range(n_drones)]] = np.arange(n_drones)
    return place[model.body_rootid[bodies]]


def motions_in_sim(data: SimData, carriers: np.ndarray) -> tuple[Array, Array, Array]:
    """Return `Backend.motions` of what drones carry, -1 for what stands still."""
    states = data.states
    ang_vel = body_to_world(states.quat, states.ang_vel)
    parts = (states.pos, states.vel, ang_vel)
    moving = (carriers >= 0)[:, None]
    centre, vel, turn = (jnp.where(moving, part[:, carriers], 0.0) for part in parts)
    return centre, vel, turn
