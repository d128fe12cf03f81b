"""Contact of a drone with the floor: standing, sliding, bouncing, tipping over.

The floor stops feet and rotor tips by the impulses of `impulses`; everything below is solid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Vec3,
    Wrench,
    no_wrench,
    rotation_matrix,
    transform,
)
from crazyflow_ros.dynamics.forces.external import DroneContact, built_once, each_of
from crazyflow_ros.dynamics.forces.impulses import Touch, body, held_alone
from crazyflow_ros.dynamics.rigid_body import RigidBody


def contact_points(drone: str) -> np.ndarray:
    """Return the (8, 3) points that touch the floor: four feet, four rotor tips (body frame, m)."""
    figures = load_drone(drone)
    geometry, signs = figures["geometry"], list(product((1, -1), repeat=2))
    feet = [(x * figures["L"], y * figures["L"], geometry["foot_z"]) for x, y in signs]
    width, height = geometry["hull_half_width"], geometry["rotor_z"]
    return np.array(feet + [(x * width, y * width, height) for x, y in signs])


def rows(points: Sequence[np.ndarray], like: Array) -> tuple[Array, ...]:
    """Return the components of points, one row per point.

    Args:
        points: (K, k) points of each drone of a world, or of all.
        like: An array of the drones, for the number of axes and the dtype.

    Returns:
        k arrays (K, ...), which broadcast with arrays of the drones.
    """
    columns = np.moveaxis(np.stack(points, axis=-1), 1, 0)  # (k, K, drones)
    axes = [1] * (like.ndim - 1) + [len(points)] if len(points) > 1 else [1] * like.ndim
    return tuple(jnp.asarray(c.reshape(-1, *axes), like.dtype) for c in columns)


def travel(vel: Vec3, freq: float) -> Array:
    """Return an upper bound of the distance travelled while contacts look ahead, m."""
    x, y, z = vel
    return (jnp.abs(x) + jnp.abs(y) + jnp.abs(z)) * (2 / freq)


@built_once
def floor_contact(drone: str | Sequence[str], freq: float) -> DroneContact:
    """Build the contact of a drone with the floor.

    Args:
        drone: Name of the drone, or of each drone of a world, for its contact points.
        freq: Step frequency in Hz; a contact lasts for one or more ticks.

    Raises:
        ValueError: Unknown drone, or a frequency that is not positive.
    """
    names = each_of(drone)
    points = [contact_points(name) for name in names]
    reach = float(np.linalg.norm(points, axis=-1).max())

    def law(state: BodyState, free: BodyDerivative, params: RigidBody) -> Wrench:
        # New functions in each call, because JAX caches traces by function, including
        # those of `apart`.
        def contact() -> Wrench:
            x, y, z = rows(points, state.pos[2])
            arm = transform(rotation_matrix(state.quat), (x, y, z))
            gap = params.above_floor(state.pos[2]) + arm[2]
            zero = jnp.zeros_like(gap)
            floor = Touch(gap, (zero, zero, jnp.ones_like(gap)), (zero, zero, zero))
            return held_alone(floor, body(state, free, params, freq), arm, freq)

        def none() -> Wrench:
            return no_wrench(state.pos[0])

        near = params.above_floor(state.pos[2]) < reach + travel(state.vel, freq)
        return jax.lax.cond(jnp.any(near), contact, none)

    return DroneContact("floor_contact", names, freq, law, is_shared=True)
