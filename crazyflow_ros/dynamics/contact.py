"""Compliant contact of a drone with the floor z = 0: normal force, friction, tipping.

Spring and damper at the feet and rotor tips, with Coulomb friction regularised by the same damper
(K. H. Hunt, F. R. E. Crossley, "Coefficient of restitution interpreted as damping in
vibroimpact", J. Appl. Mech. 1975, with a linear spring). Piecewise smooth, so it differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import isfinite
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Wrench,
    add,
    cross,
    dot,
    no_wrench,
    rotation_matrix,
    transform,
)
from crazyflow_ros.dynamics.parameters import load_drone
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.kernels import apart

Force: TypeAlias = Callable[[BodyState, RigidBody], Wrench]
"""An external influence on the drones: a pure function that each integrator stage evaluates."""


@dataclass(frozen=True)
class DroneForce:
    """A force made for certain drones, and perhaps for one length of the ticks.

    Attributes:
        name: What the force is called.
        drones: Name of each drone of a world, or the one that all are.
        law: The force.
        freq: Step frequency in Hz, if the force depends on it.
    """

    name: str
    drones: tuple[str, ...]
    law: Force
    freq: float | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody steps at.

        Raises:
            ValueError: `freq` is not a positive number.
        """
        if self.freq is not None and not (isfinite(self.freq) and self.freq > 0):
            raise ValueError(f"{self.name} needs a positive freq, got {self.freq}")

    def __call__(self, state: BodyState, params: RigidBody) -> Wrench:
        """The force."""
        return self.law(state, params)

    def check(self, drones: tuple[str, ...], freq: float) -> None:
        """Refuse to act on drones that the force was not made for.

        Args:
            drones: Name of each drone of a world.
            freq: Step frequency in Hz.

        Raises:
            ValueError: They are others, or `freq` is.
        """
        if drones not in (self.drones, self.drones * len(drones)):
            own, there = (_listed(names) for names in (self.drones, drones))
            raise ValueError(f"{self.name} is made for {own}, the simulation has {there}")
        if self.freq not in (None, freq):
            raise ValueError(f"{self.name} is made for a freq of {self.freq}, here it is {freq}")


def _listed(names: tuple[str, ...]) -> str:
    one = len(set(names)) == 1
    return f"{len(names)} {names[0]}" if one and len(names) > 1 else ", ".join(names)


def each_of(drone: str | Sequence[str]) -> tuple[str, ...]:
    """The names of drones, of one or several."""
    return (str(drone),) if isinstance(drone, str) else tuple(map(str, drone))


FRICTION = 0.6  # Coulomb coefficient, plastic on a hard floor
# A push on a rotor tip turns a drone several times as easily as it lifts it, so that what bounces
# slowly up and down rolls fast. Explicit steps stay stable, and gain no energy, up to these.
_MAX_BOUNCE_RATE = 200.0  # rad/s: sinks g / rate^2 = 0.25 mm at rest
_BOUNCE_PER_STEP = 0.3  # rad
_DAMPING_RATIO = 0.4  # up and down; explicit Euler makes 0.27 of it, a bounce returns 0.4
_SLOWEST_SLIP = 1e-9  # m/s, keeps the friction's direction defined at rest


def _bounce_rate(freq: float) -> float:
    """Natural frequency of the contact in rad/s, slow enough for explicit steps at `freq`."""
    return min(_MAX_BOUNCE_RATE, _BOUNCE_PER_STEP * freq)


def contact_points(drone: str) -> np.ndarray:
    """(8, 3) points of a drone that touch the floor: four feet, four rotor tips (body frame, m)."""
    figures = load_drone(drone)
    geometry, signs = figures["geometry"], list(product((1, -1), repeat=2))
    feet = [(x * figures["L"], y * figures["L"], geometry["foot_z"]) for x, y in signs]
    width, height = geometry["hull_half_width"], geometry["rotor_z"]
    return np.array(feet + [(x * width, y * width, height) for x, y in signs])


def rest_height(drone: str, freq: float) -> float:
    """Height of the centre of mass of a drone that stands on the floor, m."""
    figures = load_drone(drone)
    sag = -figures["gravity_vec"][2] / _bounce_rate(freq) ** 2
    return float(-figures["geometry"]["foot_z"] - sag)


def rows(points: Sequence[np.ndarray], like: Array) -> tuple[Array, ...]:
    """Components of points, one row per point.

    Args:
        points: (K, k) of each drone of a world, or of all.
        like: An array of the drones; gives number of axes and dtype.

    Returns:
        k arrays (K, ...), to be combined with arrays of the drones.
    """
    columns = np.moveaxis(np.stack(points, axis=-1), 1, 0)  # (k, K, drones)
    axes = [1] * (like.ndim - 1) + [len(points)] if len(points) > 1 else [1] * like.ndim
    return tuple(jnp.asarray(c.reshape(-1, *axes), like.dtype) for c in columns)


def push_and_grip(
    depth: Array, approach: Array, slip: Vec3, stiffness: Array, damping: Array
) -> tuple[Array, Array]:
    """What holds points that have sunk into a surface.

    Args:
        depth: How deep, m; nothing holds where that is not positive.
        approach: Velocity out of the surface, relative to it, m/s.
        slip: Velocity along the surface, m/s.
        stiffness: N/m.
        damping: N s/m, of the bounce and, at most, of the friction.

    Returns:
        Force out of the surface [N], and what the slip times -1 has to be multiplied by to be the
        friction [N s/m].
    """
    touches = depth > 0
    push = jnp.where(touches, jnp.maximum(stiffness * depth - damping * approach, 0.0), 0.0)
    speed = jnp.sqrt(dot(slip, slip) + _SLOWEST_SLIP**2)
    return push, jnp.minimum(FRICTION * push / speed, jnp.where(touches, damping, 0.0))


def bounce(mass: Array, freq: float) -> tuple[Array, Array]:
    """Stiffness [N/m] and damping [N s/m] of one point of a drone; four share its weight."""
    rate = _bounce_rate(freq)
    return mass * rate**2 / 4, _DAMPING_RATIO * mass * rate / 2


def total(rows: Wrench) -> Wrench:
    """Sum over the points, the first axis."""
    # XLA on the CPU vectorises the sum of slices, and no other.
    return Wrench(
        *jax.tree.map(lambda a: reduce(jnp.add, [a[i] for i in range(len(a))]), tuple(rows))
    )


def floor_contact(drone: str | Sequence[str], freq: float) -> DroneForce:
    """Contact force of the floor on a drone.

    Args:
        drone: Name of the drone, or of each drone of a world: where their contact points are.
        freq: Step frequency in Hz; the contact is as stiff as an explicit step can follow.

    Raises:
        ValueError: Unknown drone, or a frequency that is not positive.
    """
    names = each_of(drone)
    points = [contact_points(name) for name in names]
    reach = float(np.linalg.norm(points, axis=-1).max())

    def at_points(state: BodyState, mass: Array) -> Wrench:
        """With one more axis, the first, for all points at once."""
        R, (x, y, z) = rotation_matrix(state.quat), rows(points, state.pos[2])
        arm, vel = transform(R, (x, y, z)), transform(R, cross(state.ang_vel, (x, y, z)))
        vx, vy, vz = add(vel, state.vel)
        depth, zero = -(state.pos[2] + arm[2]), jnp.zeros_like(vx)
        push, grip = push_and_grip(depth, vz, (vx, vy, zero), *bounce(mass, freq))
        force = (-grip * vx, -grip * vy, push)
        return Wrench(force, cross(arm, force))

    def force(state: BodyState, params: RigidBody) -> Wrench:
        # New functions each time: JAX remembers what it has traced, `apart` and all.
        def contact() -> Wrench:
            return total(apart(at_points, state, params.mass[..., 0]))

        def none() -> Wrench:
            return no_wrench(state.pos[0])

        return jax.lax.cond(jnp.any(state.pos[2] < reach), contact, none)

    return DroneForce("floor_contact", names, force, freq)
