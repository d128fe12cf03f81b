"""The base of all models: parameters with a derivative, for one drone or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    PerRotor,
    Wrench,
    add,
    inverse,
    matrix_rows,
    rotation_matrix,
    scale,
    stack,
    transform,
    transpose,
)
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.xla.on_device import on_device
from crazyflow_ros.xla.struct import Struct

T = TypeVar("T")


class RigidBody(Struct):
    """Parameters that all models have, and the interface of models.

    Any parameter may have leading axes: (n_drones,), or (n_worlds, n_drones), either of which may
    have size 1.
    """

    ROTOR_STATES: ClassVar[int]
    """Number of elements of `rotor_vel` that may differ from one another: 4 in models of rotors
    that turn, whatever their number, 1 or 0."""

    mass: Array
    """(1,) kg."""
    gravity_vec: Array
    """(3,) m/s^2, world frame."""
    J: Array
    """(3, 3) kg m^2, inertia about the centre of mass, body frame."""
    J_inv: Array
    """(3, 3) 1/(kg m^2), the inverse of `J`, see `replace`."""
    obstacles: Obstacles | None = field(default=None, kw_only=True)
    """Obstacles in the world, see `forces.collisions.obstacle_contact`."""
    floor: Array | None = field(default=None, kw_only=True)
    """(1,) m, height of the floor; None for 0."""
    ground: Array | None = field(default=None, kw_only=True)
    """(n,) m, height of what is below each rotor, for the ground effect; None for what floor and
    obstacles are."""

    @classmethod
    def figures(cls, drone: str) -> dict[str, Any]:
        """Load the parameters of a drone as NumPy arrays in double precision.

        Args:
            drone: Its name, or the path of its folder.

        Raises:
            ValueError: There is no such drone, or it has no figures of the model.
        """
        known = load_drone(drone)
        return {
            "mass": np.array([known["mass"]]),
            "gravity_vec": known["gravity_vec"],
            "J": known["J"],
            "J_inv": np.linalg.inv(known["J"]),
        }

    @classmethod
    def create(cls, drone: str) -> Self:
        """Load the parameters of a drone, by its name or the path of its folder."""
        fields: dict[str, Any] = {k: on_device(v) for k, v in cls.figures(drone).items()}
        return cls(**fields)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed.

        `J` and `J_inv` follow each other, so the gradient with respect to the new one is complete.
        If both are given, they are used as they are.
        """
        for given, other in (("J", "J_inv"), ("J_inv", "J")):
            matrix = changes.get(given)
            is_one = isinstance(matrix, Array | np.ndarray) and matrix.shape[-2:] == (3, 3)
            if is_one and other not in changes:
                changes[other] = _inverse(matrix)
                break
        return super().replace(**changes)

    def derivative(self, state: BodyState, command: PerRotor, external: Wrench) -> BodyDerivative:
        """Return the time derivative of the state.

        Args:
            state: State of the drones.
            command: Command of the model: rotor speeds [RPM], or as defined by the model.
            external: Wrench on the centre of mass, world frame.
        """
        raise NotImplementedError

    def settled_rotors(self, command: PerRotor) -> PerRotor:
        """Return the `rotor_vel` that does not change under a command.

        Args:
            command: Command of the model, as for `derivative`.
        """
        raise NotImplementedError

    def pushed(self, state: BodyState, rate: BodyDerivative, wrench: Wrench) -> BodyDerivative:
        """Return the time derivative of the state with one more wrench on the centre of mass."""
        to_body = transpose(rotation_matrix(state.quat))
        turn = transform(matrix_rows(self.J_inv), transform(to_body, wrench.torque))
        return rate._replace(
            acc=add(rate.acc, scale(wrench.force, 1 / self.mass[..., 0])),
            ang_acc=add(rate.ang_acc, turn),
        )

    def above_floor(self, z: Array) -> Array:
        """Return heights above the floor [m] of heights in the world."""
        return z if self.floor is None else z - self.floor[..., 0]

    @property
    def hover_thrust(self) -> Array:
        """(..., 1) N, commanded collective thrust with which a level drone keeps its altitude."""
        return -self.mass * self.gravity_vec[..., 2:]

    def rotor_thrust(self, state: BodyState) -> PerRotor:
        """Return the thrust of each rotor, N. Models without rotors are assumed to hover."""
        del state
        share = -self.mass[..., 0] * self.gravity_vec[..., 2] / 4
        return (share, share, share, share)


@jax.jit
def _inverse(matrix: Array) -> Array:
    """Return the inverse of matrices (..., 3, 3)."""
    return jnp.stack([stack(row) for row in inverse(matrix_rows(matrix))], axis=-2)


def of_each(load: Callable[[str], T], drone: str | Sequence[str]) -> T:
    """Return `load(drone)`; for several drones, their arrays stacked along a new first axis.

    Parameters that only some of the drones have are 0 for the others.
    """
    if isinstance(drone, str):
        return load(drone)
    loaded = _alike([load(name) for name in drone])
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *loaded)


def _alike(loaded: list[T]) -> list[T]:
    """Give all parameters the fields that any of them has; missing fields become zeros."""
    if not isinstance(loaded[0], RigidBody):
        return loaded
    parameters: list[Any] = loaded
    known = {k: v for each in parameters for k, v in vars(each).items() if v is not None}
    missing = [[k for k in known if vars(each)[k] is None] for each in parameters]
    return [
        each.replace(**{k: jnp.zeros_like(known[k]) for k in names})
        for each, names in zip(parameters, missing)
    ]
