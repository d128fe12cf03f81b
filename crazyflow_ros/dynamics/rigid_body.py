"""The base of all models: parameters with a derivative, for one drone or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Vec4,
    Wrench,
    add,
    matrix_rows,
    rotation_matrix,
    scale,
    transform,
    transpose,
)
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.struct import Struct

T = TypeVar("T")


class RigidBody(Struct):
    """Parameters that all models have, and what a model is.

    Any parameter may carry leading axes: (n_drones,), or (n_worlds, n_drones), either of which may
    be of size 1.
    """

    mass: Array
    """(1,) kg."""
    gravity_vec: Array
    """(3,) m/s^2, world frame."""
    J: Array
    """(3, 3) kg m^2, inertia about the centre of mass, body frame."""
    J_inv: Array
    """(3, 3) 1/(kg m^2)."""
    obstacles: Obstacles | None = field(default=None, kw_only=True)
    """The obstacles in the world, see `collision.obstacle_contact`."""

    @classmethod
    def create(cls, drone: str) -> Self:
        """Parameters of a drone, by its name or the path of its folder."""
        raise NotImplementedError

    def derivative(self, state: BodyState, command: Vec4, external: Wrench) -> BodyDerivative:
        """Time derivative of the state.

        Args:
            state: State of the drones.
            command: Speeds of the rotors [RPM], or the command that the model documents.
            external: Wrench on the centre of mass, world frame.
        """
        raise NotImplementedError

    def pushed(self, state: BodyState, rate: BodyDerivative, wrench: Wrench) -> BodyDerivative:
        """Time derivative of the state if one more wrench acts on the centre of mass."""
        to_body = transpose(rotation_matrix(state.quat))
        turn = transform(matrix_rows(self.J_inv), transform(to_body, wrench.torque))
        return rate._replace(
            acc=add(rate.acc, scale(wrench.force, 1 / self.mass[..., 0])),
            ang_acc=add(rate.ang_acc, turn),
        )

    @property
    def hover_thrust(self) -> Array:
        """(..., 1) N, collective thrust to command for a level drone to keep its height."""
        return -self.mass * self.gravity_vec[..., 2:]

    def rotor_thrust(self, state: BodyState) -> Vec4:
        """Thrust of each rotor, N. A model without rotors is assumed to hover."""
        share = -self.mass[..., 0] * self.gravity_vec[..., 2] / 4
        return (share, share, share, share)


def of_each(load: Callable[[str], T], drone: str | Sequence[str]) -> T:
    """Call `load` for a drone; for several, stack their arrays along a new first axis."""
    if isinstance(drone, str):
        return load(drone)
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *(load(name) for name in drone))


def body_figures(drone: str) -> dict[str, Any]:
    """The fields of `RigidBody` for a drone."""
    figures = load_drone(drone)
    return {
        "mass": jnp.array([figures["mass"]]),
        "gravity_vec": jnp.array(figures["gravity_vec"]),
        "J": jnp.array(figures["J"]),
        "J_inv": jnp.array(np.linalg.inv(figures["J"])),
    }
