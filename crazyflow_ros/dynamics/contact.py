"""Compliant contact of a drone with the floor z = 0: normal force, friction, tipping.

Spring and damper at the feet and rotor tips, with Coulomb friction regularised by the same damper
(K. H. Hunt, F. R. E. Crossley, "Coefficient of restitution interpreted as damping in
vibroimpact", J. Appl. Mech. 1975, with a linear spring). Piecewise smooth, so it differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from crazyflow_ros.dynamics.components import BodyState, Wrench, cross, rotation_matrix, transform
from crazyflow_ros.dynamics.parameters import load_drone
from crazyflow_ros.dynamics.rigid_body import RigidBody

Force: TypeAlias = Callable[[BodyState, RigidBody], Wrench]
"""An external influence on the drones: a pure function that each integrator stage evaluates."""

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


def floor_contact(drone: str | Sequence[str], freq: float) -> Force:
    """Contact force of the floor on a drone.

    Args:
        drone: Name of the drone, or of each drone of a world: where their contact points are.
        freq: Step frequency in Hz; the contact is as stiff as an explicit step can follow.
    """
    each = [drone] if isinstance(drone, str) else drone
    points = np.moveaxis(np.squeeze([contact_points(name) for name in each]), -1, 0)
    reach, rate = float(np.linalg.norm(points, axis=0).max()), _bounce_rate(freq)

    def contact(state: BodyState, params: RigidBody) -> Wrench:
        # One more axis, the points, for all of them at once.
        R, mass = rotation_matrix(state.quat), params.mass[..., 0]
        (x, y, z), (wx, wy, wz) = (jnp.asarray(p, mass.dtype) for p in points), state.ang_vel
        turning = (wx[..., None], wy[..., None], wz[..., None])
        rows = jax.tree.map(lambda r: r[..., None], R)
        arm = transform(rows, (x, y, z))
        vx, vy, vz = transform(rows, cross(turning, (x, y, z)))
        vx, vy, vz = (v + u[..., None] for v, u in zip((vx, vy, vz), state.vel))

        # Four points share the weight.
        stiffness, damping = mass * rate**2 / 4, _DAMPING_RATIO * mass * rate / 2
        depth = -(state.pos[2][..., None] + arm[2])
        push = jnp.maximum(stiffness[..., None] * depth - damping[..., None] * vz, 0.0)
        normal = jnp.where(depth > 0, push, 0.0)
        slip = jnp.sqrt(vx * vx + vy * vy + _SLOWEST_SLIP**2)
        grip = jnp.minimum(FRICTION * normal / slip, jnp.where(depth > 0, damping[..., None], 0.0))
        f = (-grip * vx, -grip * vy, normal)
        total, torque = (jax.tree.map(lambda a: a.sum(-1), v) for v in (f, cross(arm, f)))
        return Wrench(total, torque)

    def none(state: BodyState, params: RigidBody) -> Wrench:
        zero = jnp.zeros_like(state.pos[0])
        return Wrench((zero, zero, zero), (zero, zero, zero))

    def force(state: BodyState, params: RigidBody) -> Wrench:
        near = jnp.any(state.pos[2] < reach)
        return jax.lax.cond(near, contact, none, state, params)

    return force
