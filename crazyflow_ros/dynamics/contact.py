"""Compliant contact of a drone with the floor z = 0: normal force, friction, tipping.

Spring and damper at the feet and rotor tips, with Coulomb friction regularised by the same damper
(K. H. Hunt, F. R. E. Crossley, "Coefficient of restitution interpreted as damping in
vibroimpact", J. Appl. Mech. 1975, with a linear spring). Piecewise smooth, so it differentiates.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeAlias

import jax.numpy as jnp

from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Wrench,
    add,
    cross,
    rotation_matrix,
    transform,
)
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.parameters import load_drone

Force: TypeAlias = Callable[[BodyState, Params], Wrench]
"""An external influence on the drones: a pure function that each integrator stage evaluates."""

FRICTION = 0.6  # Coulomb coefficient, plastic on a hard floor
_MAX_STIFFNESS_RATE = 200.0  # rad/s, bounce frequency: sinks g / rate^2 = 0.25 mm at rest
_SLOWEST_SLIP = 1e-9  # m/s, keeps the friction's direction defined at rest


def _bounce_rate(freq: float) -> float:
    """Natural frequency of the contact in rad/s, slow enough for explicit steps at `freq`."""
    return min(_MAX_STIFFNESS_RATE, 0.4 * freq)


def contact_points(drone: str) -> list[tuple[float, float, float]]:
    """The points of a drone that touch the floor: four feet, four rotor tips (body frame, m)."""
    figures = load_drone(drone)
    geometry, signs = figures["geometry"], list(product((1, -1), repeat=2))
    feet = [(x * figures["L"], y * figures["L"], geometry["foot_z"]) for x, y in signs]
    width, height = geometry["hull_half_width"], geometry["rotor_z"]
    return feet + [(x * width, y * width, height) for x, y in signs]


def rest_height(drone: str, freq: float) -> float:
    """Height of the centre of mass of a drone that stands on the floor, m."""
    figures = load_drone(drone)
    sag = -figures["gravity_vec"][2] / _bounce_rate(freq) ** 2
    return float(-figures["geometry"]["foot_z"] - sag)


def floor_contact(drone: str, freq: float) -> Force:
    """Contact force of the floor on a drone.

    Args:
        drone: Name of the drone: where its contact points are.
        freq: Step frequency in Hz; the contact is as stiff as an explicit step can follow.
    """
    points, rate = contact_points(drone), _bounce_rate(freq)

    def force(state: BodyState, params: Params) -> Wrench:
        R, mass = rotation_matrix(state.quat), params.mass[..., 0]
        stiffness, damping = mass * rate**2 / 4, mass * rate / 2  # four points share the weight
        zero = jnp.zeros_like(state.pos[0])
        total_force: Vec3 = (zero, zero, zero)
        total_torque: Vec3 = (zero, zero, zero)
        for x, y, z in points:
            point = (zero + x, zero + y, zero + z)
            arm = transform(R, point)
            vx, vy, vz = add(state.vel, transform(R, cross(state.ang_vel, point)))
            depth = -(state.pos[2] + arm[2])
            push = jnp.maximum(stiffness * depth - damping * vz, 0.0)
            normal = jnp.where(depth > 0, push, 0.0)
            slip = jnp.sqrt(vx * vx + vy * vy + _SLOWEST_SLIP**2)
            grip = jnp.minimum(FRICTION * normal / slip, jnp.where(depth > 0, damping, 0.0))
            f = (-grip * vx, -grip * vy, normal)
            total_force = add(total_force, f)
            total_torque = add(total_torque, cross(arm, f))
        return Wrench(total_force, total_torque)

    return force
