"""Ground effect and downwash: forces for `Sim(forces=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi

import jax
import jax.numpy as jnp
import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Wrench,
    add,
    cross,
    drag_force,
    no_wrench,
    rotation_matrix,
    scale,
    total,
    transform,
)
from crazyflow_ros.dynamics.forces.external import DroneForce, each_of
from crazyflow_ros.dynamics.rigid_body import RigidBody

AIR_DENSITY = 1.225  # kg/m^3, at sea level
_LOWEST = 0.5  # rotor radii, minimum height at which the formula of the ground effect is valid
_HIGHEST = 25.0  # rotor radii, maximum height at which the ground effect is computed
# Distance from the axis, in rotor radii plus a share of the distance below the drone, beyond which
# the jet has less than 1e-8 of its speed.
_NARROW, _WIDE = 9.0, 0.5
_LEAST = 1e-6  # N, minimum thrust of a jet
_JET_SPREAD = 0.094  # of a round jet: distance from the axis, per length, at half the speed


def ground_effect(drone: str | Sequence[str]) -> DroneForce:
    """Build the additional thrust near the floor z = 0, for each rotor at its own height.

    A rotor of radius R at height z produces 1 / (1 - (R / 4z)^2) times its thrust far from the
    floor (I. C. Cheeseman, W. E. Bennett, "The effect of the ground on a helicopter rotor in
    forward flight", ARC R&M 3021, 1955).

    Args:
        drone: Name of the drone, or of each drone of a world, for the positions of the rotors.
    """
    figures = _figures(drone)
    mixing = load_drone(drone if isinstance(drone, str) else drone[0])["mixing_matrix"]
    # Thrust f at (x, y) produces the torque (y f, -x f).
    places = [(-mixing[1, i] * figures["L"], mixing[0, i] * figures["L"]) for i in range(4)]

    def near(state: BodyState, params: RigidBody) -> Wrench:
        R, dtype = rotation_matrix(state.quat), state.pos[0].dtype
        up = (R[0][2], R[1][2], R[2][2])
        height, radius = (jnp.asarray(figures[k], dtype) for k in ("rotor_z", "rotor_radius"))
        lift: Vec3 = scale(up, 0.0)
        torque = lift
        for (x, y), thrust in zip(places, params.rotor_thrust(state)):
            arm = transform(R, (jnp.asarray(x, dtype), jnp.asarray(y, dtype), height))
            ratio = radius / (4 * jnp.maximum(state.pos[2] + arm[2], _LOWEST * radius))
            extra = scale(up, thrust * (1 / (1 - ratio * ratio) - 1))
            lift, torque = add(lift, extra), add(torque, cross(arm, extra))
        return Wrench(lift, torque)

    def force(state: BodyState, params: RigidBody) -> Wrench:
        # In the air, this costs one comparison; otherwise, a sixth of the tick of a single drone.
        is_near = state.pos[2] < jnp.asarray(_HIGHEST * figures["rotor_radius"], state.pos[2].dtype)
        return jax.lax.cond(
            jnp.any(is_near), lambda: near(state, params), lambda: no_wrench(state.pos[0])
        )

    return DroneForce("ground_effect", each_of(drone), None, force)


def downwash(drone: str | Sequence[str]) -> DroneForce:
    """Build the downwash of drones above others in the same world.

    The air below a drone is a round vertical jet with the momentum of the thrust: first as wide as
    the rotors, with the speed of momentum theory; then with a Gaussian profile whose speed is
    halved at 0.094 times the distance below, from the axis (S. B. Pope, "Turbulent Flows", 2000,
    section 5.1; K. P. Jain et al., "Modeling of aerodynamic disturbances for proximity flight of
    multirotors", ICRA 2019). It acts on the drone below through its drag.

    Args:
        drone: Name of the drone, or of each drone of a world, for its rotors and its drag.
    """
    figures = _figures(drone)
    decay = float(np.sqrt(log(2)) / _JET_SPREAD)

    def force(state: BodyState, params: RigidBody) -> Wrench:
        dtype = state.pos[0].dtype
        a, b, c, d = params.rotor_thrust(state)
        # Drone [..., i, :] acts on drone [..., :, j].
        thrust = jnp.broadcast_to(a + b + c + d, state.pos[2].shape)[..., None]
        radius = jnp.asarray(figures["rotor_radius"], dtype)[..., None]
        x, y, z = (p[..., :, None] - p[..., None, :] for p in state.pos)
        reach = _NARROW * radius + _WIDE * z
        # False for pairs with a lost drone, whose state may be NaN.
        meets = (z > 0) & (x * x + y * y < reach * reach) & (thrust > _LEAST)

        def blown() -> Wrench:
            momentum = 2 * jnp.where(meets, thrust, 1.0) / (pi * AIR_DENSITY)
            far = jnp.sqrt(momentum) * decay / jnp.where(meets, z, 1.0)
            axis = jnp.minimum(far, jnp.sqrt(momentum) / (2 * radius))
            # The width at which the jet has the momentum of the thrust.
            fraction = jnp.exp(-(x * x + y * y) * axis * axis / momentum)
            speed = total(jnp.where(meets, axis * fraction, 0.0))
            zero = jnp.zeros_like(speed)
            drag = jnp.asarray(figures["drag_matrix"], dtype)
            # Air that moves down past a body at rest is like a body that moves up in
            # air at rest.
            return Wrench(drag_force(state.quat, (zero, zero, speed), drag), (zero, zero, zero))

        return jax.lax.cond(jnp.any(meets), blown, lambda: no_wrench(state.pos[0]))

    return DroneForce("downwash", each_of(drone), None, force)


def _figures(drone: str | Sequence[str]) -> dict[str, np.ndarray]:
    """Load the parameters of a drone; for several drones, with a first axis."""

    def of(name: str) -> dict[str, np.ndarray]:
        figures = load_drone(name)
        names = ("L", "drag_matrix")
        return figures["geometry"] | {k: np.asarray(figures[k]) for k in names}

    if isinstance(drone, str):
        return of(drone)
    return jax.tree.map(lambda *values: np.stack(values), *(of(name) for name in drone))
