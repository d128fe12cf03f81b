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
from crazyflow_ros.dynamics.forces.floor import rows
from crazyflow_ros.dynamics.forces.jets import FEW, Jets, pressures, pressures_of_many
from crazyflow_ros.dynamics.ground import even_ground, ground_of_rotors
from crazyflow_ros.dynamics.rigid_body import RigidBody

_LOWEST = 0.5  # rotor radii, minimum height at which the formula of the ground effect is valid
GROUND_REACH = 25.0
"""Height at which the ground effect ends, in radii of the rotors."""
_BODY = 2.0  # K_b of Sanchez-Cuevas et al., measured with a quadrotor
_RESISTANCE = 1.35  # loss of thrust in a jet, per dynamic pressure and area of the rotor discs
_TURNING = 1.63  # torque in a jet, per moment of the lost thrust


@built_once
def ground_effect(drone: str | Sequence[str], freq: float | None = None) -> DroneForce:
    """Build the additional thrust near the ground, for each rotor at its own height.

    The ground is what is solid below a rotor: the floor or an obstacle. Near it a rotor produces
    1 / (1 - q) times its thrust, where

        q = sum over rotors j of w_j R^2 z_j / (2 (d_j^2 + 4 z_j^2)^(3/2))
            + 2 K R^2 z / (b^2 + 4 z^2)^(3/2)

    (P. Sanchez-Cuevas, G. Heredia, A. Ollero, "Characterization of the aerodynamic ground effect
    and its influence in multirotor control", IJAE 2017, 1823056). The sum is over images of the
    rotors in the ground, as of sources: d_j is the horizontal distance of rotor j, and z_j half
    the height above its image. For the rotor itself this is (R / 4z)^2 (I. C. Cheeseman,
    W. E. Bennett, ARC R&M 3021, 1955). The other term is the fountain of air that rises where the
    jets meet, and carries the body: K = 2, measured by the authors, b is the distance between
    opposite rotors, and z the mean height of all. The weight w_j is 1 for a rotor alone at its
    place, 1/2 if two are above one another. All fades out, as 1 - (z_j / 25 R)^4, up to 25 radii;
    the fountain as the highest rotor does, since beside an edge no jets meet.

    Args:
        drone: Name of the drone, or of each drone of a world, for the positions of the rotors.
        freq: Has no effect.
    """
    del freq
    names = each_of(drone)
    figures = _figures(drone)
    positions = [load_drone(name)["rotors"].position for name in names]
    reach = float(np.linalg.norm(positions, axis=-1).max())
    across = 2 * np.mean(np.linalg.norm(figures["position"][..., :2], axis=-1), axis=-1)
    share = figures["discs"] / len(positions[0])

    def places(state: BodyState) -> Vec3:
        x, y, z = rows(positions, state.pos[2])
        return transform(rotation_matrix(state.quat), (x, y, z))

    def near(state: BodyState, params: RigidBody, ground: Array | float) -> Wrench:
        dtype = state.pos[0].dtype
        radius, b, each = (
            jnp.asarray(figure, dtype) for figure in (figures["rotor_radius"], across, share)
        )
        arm = places(state)
        x, y, z = arm[0], arm[1], arm[2] + state.pos[2]
        height = jnp.maximum(z - ground, _LOWEST * radius)
        rest = jnp.minimum(height / (GROUND_REACH * radius), 1.0)
        weight = 1 - rest * rest * rest * rest
        apart = [p[:, None] - p for p in (x, y)]
        half = jnp.maximum((z[:, None] + z) / 2 - (z - height)[:, None], _LOWEST * radius)
        images = _source(radius, half, apart[0] * apart[0] + apart[1] * apart[1])
        mean = reduce(add_arrays, height) / len(height)
        rises = reduce(jnp.minimum, weight) * _source(radius, mean, b * b)
        q = reduce(add_arrays, (each * weight)[:, None] * images) + 4 * _BODY * rises
        thrust = jnp.stack(
            [jnp.broadcast_to(own, state.pos[2].shape) for own in params.rotor_thrust(state)]
        )
        R = rotation_matrix(state.quat)
        extra = scale((R[0][2], R[1][2], R[2][2]), thrust * (q / (1 - q)))
        push, turn = (reduce(add, zip(*each)) for each in (extra, cross(arm, extra)))
        return Wrench(push, turn)

    def force(state: BodyState, params: RigidBody) -> Wrench:
        # In the air, this costs one comparison; otherwise, a quarter of the tick of a single drone.
        # Over even ground the height of the drone tells, without those of its rotors.
        ground, z = even_ground(params), state.pos[2]
        if ground is None:
            ground = ground_of_rotors(add(state.pos, places(state)), params)
        limit = jnp.asarray(GROUND_REACH * figures["rotor_radius"] + reach, z.dtype)
        is_near = z - ground < limit
        return jax.lax.cond(
            jnp.any(is_near), lambda: near(state, params, ground), lambda: no_wrench(state.pos[0])
        )

    return DroneForce("ground_effect", names, None, force, is_shared=True)


def _source(radius: Array, height: Array, aside: Array) -> Array:
    """Return the speed of the air at a rotor due to its image in the ground, over that of its own.

    Args:
        radius: Of the rotor, m.
        height: Half the distance of the image below, m.
        aside: Square of the horizontal distance of the image, m^2.
    """
    square = aside + 4 * height * height
    return radius * radius * height / (2 * square * jnp.sqrt(square))


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
    drones than quadrotors, 4 is the number of rotors that are not above one another.

    Beside the axis the side towards it loses more, so the drone below is turned: it tilts towards
    the axis. The torque is 1.63 times the moment of the lost thrust over its rotor discs, which is
    the loss times r w_below / b^2. Just below a drone, where the jets have not merged, it fades
    out, as z^2 / (z^2 + w_above). 1.35 and 1.63 are fitted to flights of Crazyflies, see
    docs/reference/dynamics.md. The model leaves out the motion of the drone below and the time
    that the air takes.

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

        def loses(pressure: Array, slope: Vec3) -> Wrench:
            loss = jnp.asarray(resistance, dtype) * pressure
            turn = jnp.asarray(_TURNING * resistance * spread, dtype)
            # The share of a downward flow that passes through the discs of a tilted drone.
            return Wrench(scale(up, -loss * up[2]), scale(cross(slope, up), turn * up[2]))

        if shape[-1] > FEW:
            return loses(*pressures_of_many(jets, order))
        everywhere = partial(jets.on, state.pos, own)
        return jax.lax.cond(
            jnp.any(everywhere()[-1]),
            # Computed again, which is cheaper than storing them.
            lambda: loses(*pressures(thrust, *everywhere())),
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
