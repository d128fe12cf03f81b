"""Ground effect and downwash: forces for `Sim(forces=...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add as add_arrays

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyState,
    Vec3,
    Wrench,
    add,
    cross,
    no_wrench,
    rotation_matrix,
    scale,
    transform,
)
from crazyflow_ros.dynamics.forces.external import DroneForce, built_once, each_of
from crazyflow_ros.dynamics.forces.jets import FEW, Jets, pressures, pressures_of_many
from crazyflow_ros.dynamics.ground import ground_below
from crazyflow_ros.dynamics.rigid_body import RigidBody

_LOWEST = 0.5  # rotor radii, minimum height at which the formula of the ground effect is valid
_HIGHEST = 25.0  # rotor radii, maximum height at which the ground effect is computed
_RESISTANCE = 1.35  # loss of thrust in a jet, per dynamic pressure and area of the rotor discs


@built_once
def ground_effect(drone: str | Sequence[str], freq: float | None = None) -> DroneForce:
    """Build the additional thrust near the ground, for each rotor at its own height.

    The ground is the floor, or what is solid below the middle of the drone.

    A rotor of radius R at height z produces 1 / (1 - (R / 4z)^2) times its thrust far from the
    floor (I. C. Cheeseman, W. E. Bennett, "The effect of the ground on a helicopter rotor in
    forward flight", ARC R&M 3021, 1955).

    Args:
        drone: Name of the drone, or of each drone of a world, for the positions of the rotors.
        freq: Has no effect.
    """
    del freq
    figures = _figures(drone)
    places = np.moveaxis(figures["position"], (-2, -1), (0, 1))  # (n, 3), and an axis of drones

    def near(state: BodyState, params: RigidBody) -> Wrench:
        R, dtype = rotation_matrix(state.quat), state.pos[0].dtype
        up = (R[0][2], R[1][2], R[2][2])
        radius = jnp.asarray(figures["rotor_radius"], dtype)
        height = _height(state, params)
        lift: Vec3 = scale(up, 0.0)
        torque = lift
        for place, thrust in zip(places, params.rotor_thrust(state)):
            x, y, z = (jnp.asarray(each, dtype) for each in place)
            arm = transform(R, (x, y, z))
            ratio = radius / (4 * jnp.maximum(height + arm[2], _LOWEST * radius))
            extra = scale(up, thrust * (1 / (1 - ratio * ratio) - 1))
            lift, torque = add(lift, extra), add(torque, cross(arm, extra))
        return Wrench(lift, torque)

    def force(state: BodyState, params: RigidBody) -> Wrench:
        # In the air, this costs one comparison; otherwise, a sixth of the tick of a single drone.
        z = _height(state, params)
        is_near = z < jnp.asarray(_HIGHEST * figures["rotor_radius"], z.dtype)
        return jax.lax.cond(
            jnp.any(is_near), lambda: near(state, params), lambda: no_wrench(state.pos[0])
        )

    return DroneForce("ground_effect", each_of(drone), None, force, is_shared=True)


def _height(state: BodyState, params: RigidBody) -> Array:
    """Return the height of drones above the ground, m."""
    ground = ground_below(state.pos, params)
    return params.above_floor(state.pos[2]) if ground is None else state.pos[2] - ground


@built_once
def downwash(drone: str | Sequence[str], freq: float | None = None) -> DroneForce:
    """Build the downwash of drones above others in the same world.

    Below a drone, against its thrust, the jets of its rotors merge. As in H. Reichardt's theory of
    free turbulence (1942) their momenta add up, and each spreads like a round jet, whose speed is
    halved at 0.094 times the depth away from the axis (S. B. Pope, "Turbulent Flows", 2000,
    section 5.1). So at the depth z the momentum, whose flux is the thrust T, has a Gaussian
    profile; its mean square radius is that of the rotor discs plus that of the spreading. The
    drone below loses thrust: 1.35 times the dynamic pressure of the air, averaged over its rotor
    discs, times their area. At the distance r from the axis the loss is

        1.35 * 4 R^2 T / b^2 * exp(-2 r^2 / b^2),    b^2 = w_above + w_below + (0.113 z)^2
                                                     w = 4 L^2 + R^2

    with the radius R of its rotors; L is their distance from the body's x and y axes. For other
    drones than quadrotors, 4 is the number of rotors that are not above one another. 1.35 is
    fitted to flights of Crazyflies, see docs/dynamics.md. The model leaves out the motion of the
    drone below, the time that the air takes, and the torque where the flow differs among rotors.

    Args:
        drone: Name of the drone, or of each drone of a world, for its rotors.
        freq: Has no effect.
    """
    del freq
    force = downwash_in_order(drone)
    return DroneForce(
        *("downwash", each_of(drone), None),
        lambda state, params: force(state, params, None),
        is_shared=True,
    )


def downwash_in_order(
    drone: str | Sequence[str],
) -> Callable[[BodyState, RigidBody, Array | None], Wrench]:
    """Return `downwash` as a function that also takes the order in which to compute many drones.

    Args:
        drone: See `downwash`.

    Returns:
        A function whose last argument is None, or the drones in an order in which neighbours
        follow each other, and the inverse of that permutation, (2, M) integers. The order affects
        the run time, never the result.
    """
    figures = _figures(drone)
    resistance = _RESISTANCE * figures["discs"] * figures["rotor_radius"] ** 2
    spread = 4 * figures["L"] ** 2 + figures["rotor_radius"] ** 2

    def force(state: BodyState, params: RigidBody, order: Array | None) -> Wrench:
        shape, dtype = state.pos[0].shape, state.pos[0].dtype
        lift = reduce(add_arrays, params.rotor_thrust(state))
        R = rotation_matrix(state.quat)
        up = (R[0][2], R[1][2], R[2][2])
        thrust = jnp.broadcast_to(lift, shape)
        own = jnp.broadcast_to(jnp.asarray(spread, dtype), shape[-1:])
        jets = Jets(state.pos, up, thrust, own)

        def loses(pressure: Array) -> Wrench:
            loss = jnp.asarray(resistance, dtype) * pressure
            zero = jnp.zeros_like(loss)
            # The share of a downward flow that passes through the discs of a tilted drone.
            return Wrench(scale(up, -loss * up[2]), (zero, zero, zero))

        if shape[-1] > FEW:
            return loses(pressures_of_many(jets, order))
        everywhere = partial(jets.on, state.pos, own)
        return jax.lax.cond(
            jnp.any(everywhere()[2]),
            # Computed again, which is cheaper than storing them.
            lambda: loses(pressures(thrust, *everywhere())),
            lambda: no_wrench(state.pos[0]),
        )

    return force


def _figures(drone: str | Sequence[str]) -> dict[str, np.ndarray]:
    """Load the parameters of a drone; for several drones, with a first axis."""

    def of(name: str) -> dict[str, np.ndarray]:
        figures = load_drone(name)
        rotors = figures["rotors"]
        own = {"L": np.asarray(figures["L"]), "position": rotors.position}
        return figures["geometry"] | own | {"discs": np.asarray(len(rotors.places))}

    if isinstance(drone, str):
        return of(drone)
    return jax.tree.map(lambda *values: np.stack(values), *(of(name) for name in drone))
