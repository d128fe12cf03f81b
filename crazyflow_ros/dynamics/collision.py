"""Contact of drones with obstacles and with one another, by the law of the floor's contact.

Points of a drone, some of them with a radius, sink into analytic shapes. What pushes them back
depends on where they are by a potential, so that a collision gains no energy, and it has a
gradient. What is thinner than a drone sinks in while it is braked is run through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyState,
    Matrix3,
    Vec3,
    Wrench,
    add,
    add_wrenches,
    cross,
    dot,
    no_wrench,
    rotation_matrix,
    scale,
    split,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.contact import (
    DroneForce,
    bounce,
    contact_points,
    each_of,
    push_and_grip,
    rows,
    total,
)
from crazyflow_ros.dynamics.obstacles import SLOT_AXES, Obstacles, Shape, signed_distance
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.kernels import apart

T = TypeVar("T")

_ROUNDNESS = 0.8  # of the spheres' diameter, in heights of the hull: feet and tips touch first


class _Solid(NamedTuple):
    """A shape where it is, and how it moves."""

    shape: Array
    size: Vec3
    pos: Vec3
    axes: Matrix3
    vel: Vec3
    turning: Vec3
    """Angular velocity, world frame, rad/s."""


def contact_spheres(drone: str) -> np.ndarray:
    """(13, 4) centres (body frame, m) and radii [m] of what of a drone touches obstacles.

    The points that touch the floor, without a radius, and spheres in its middle and in those of its
    sides, so that nothing slips in between.
    """
    points, ((width, height, middle),) = contact_points(drone), _hull(drone)
    radius = _ROUNDNESS * height
    side = width - radius
    centres = [(0, 0), (side, 0), (-side, 0), (0, side), (0, -side)]
    spheres = [(x, y, middle, radius) for x, y in centres]
    return np.array([*np.pad(points, ((0, 0), (0, 1))), *spheres])


def _reach(spheres: Sequence[np.ndarray]) -> float:
    """Of the largest drone [m]."""
    return max(float((np.linalg.norm(s[:, :3], axis=-1) + s[:, 3]).max()) for s in spheres)


def _touch(
    solid: _Solid, state: BodyState, spheres: Sequence[np.ndarray], law: tuple[Array, Array]
) -> Wrench:
    """What a shape does to each drone.

    Args:
        solid: The shape.
        state: Of the drones.
        spheres: See `contact_spheres`, of each drone or of all.
        law: Stiffness and damping of a sphere.
    """

    # One row per sphere, and in two parts, as each result is worked out by itself.
    def where(state: BodyState, solid: _Solid) -> tuple[Vec3, Array, Vec3]:
        x, y, z, radius = rows(spheres, state.pos[0])
        arm = transform(rotation_matrix(state.quat), (x, y, z))
        place = add(subtract(state.pos, solid.pos), arm)
        distance, outwards = signed_distance(
            solid.shape, solid.size, transform(transpose(solid.axes), place)
        )
        normal = transform(solid.axes, outwards)
        return subtract(arm, scale(normal, radius)), radius - distance, normal

    def pushed(
        found: tuple[Vec3, Array, Vec3], state: BodyState, solid: _Solid, law: tuple[Array, Array]
    ) -> Wrench:
        arm, depth, normal = found
        own = add(state.vel, cross(transform(rotation_matrix(state.quat), state.ang_vel), arm))
        from_solid = add(subtract(state.pos, solid.pos), arm)
        vel = subtract(own, add(solid.vel, cross(solid.turning, from_solid)))
        approach = dot(vel, normal)
        slip = subtract(vel, scale(normal, approach))
        push, grip = push_and_grip(depth, approach, slip, *law)
        force = subtract(scale(normal, push), scale(slip, grip))
        return Wrench(force, cross(arm, force))

    return total(apart(pushed, apart(where, state, solid), state, solid, law))


def obstacle_contact(drone: str | Sequence[str], freq: float) -> DroneForce:
    """Contact force of `params.obstacles` on a drone; none if there are none.

    Args:
        drone: Name of the drone, or of each drone of a world: how large they are.
        freq: Step frequency in Hz; the contact is as stiff as an explicit step can follow.

    Raises:
        ValueError: Unknown drone, or a frequency that is not positive.
    """
    names = each_of(drone)
    each = [contact_spheres(name) for name in names]
    reach = _reach(each)

    def force(state: BodyState, params: RigidBody) -> Wrench:
        if params.obstacles is None or params.obstacles.n_slots == 0:
            return no_wrench(state.pos[0])

        def add_one(so_far: Wrench, obstacle: Obstacles) -> tuple[Wrench, None]:
            pos, axes = vector(obstacle.pos), rotation_matrix(split(obstacle.quat))  # type: ignore[arg-type]
            still = (jnp.zeros_like(pos[0]),) * 3
            solid = _Solid(obstacle.shape, vector(obstacle.size), pos, axes, still, still)
            centre = transform(transpose(axes), subtract(state.pos, pos))
            away, _ = signed_distance(solid.shape, solid.size, centre)

            def touched(so_far: Wrench, state: BodyState, solid: _Solid, mass: Array) -> Wrench:
                return add_wrenches(so_far, _touch(solid, state, each, bounce(mass, freq)))

            mass = params.mass[..., 0]
            near = jnp.any(away < reach)
            return jax.lax.cond(near, touched, lambda f, *_: f, so_far, state, solid, mass), None

        obstacles = jax.tree.map(
            lambda x, axis: jnp.moveaxis(x, axis, 0), params.obstacles, SLOT_AXES
        )
        return jax.lax.scan(add_one, no_wrench(state.pos[0]), obstacles)[0]

    return DroneForce("obstacle_contact", names, force, freq)


def drone_contact(drone: str | Sequence[str], freq: float) -> DroneForce:
    """Contact force of the drones of a world on one another, whose hulls are boxes.

    Args:
        drone: Name of the drone, or of each drone of a world: how large they are.
        freq: Step frequency in Hz; the contact is as stiff as an explicit step can follow.

    Raises:
        ValueError: Unknown drone, or a frequency that is not positive.
    """
    names = each_of(drone)
    each, hulls = [contact_spheres(name) for name in names], [_hull(name) for name in names]
    reach = _reach(each)

    def force(state: BodyState, params: RigidBody) -> Wrench:
        n_drones = state.pos[0].shape[-1] if state.pos[0].ndim else 1
        if n_drones == 1:
            return no_wrench(state.pos[0])
        mass, *hull = (
            jnp.broadcast_to(x, state.pos[0].shape)
            for x in (params.mass[..., 0], *(h[0] for h in rows(hulls, state.pos[0])))
        )

        def further(tree: T, places: Array) -> T:
            """Of each drone, what the one so many places further has."""

            def turn(x: Array) -> Array:
                twice = jnp.concatenate((x, x), axis=-1)
                return jax.lax.dynamic_slice_in_dim(twice, places, n_drones, axis=-1)

            return jax.tree.map(turn, tree)

        def near(places: Array) -> Array:
            gap = subtract(further(state.pos, places), state.pos)
            return dot(gap, gap) < 4 * reach**2

        def meet(places: Array, so_far: Wrench) -> Wrench:
            def touched(so_far: Wrench) -> Wrench:
                other, other_mass, other_hull = further((state, mass, hull), places)
                reduced = mass * other_mass / (mass + other_mass)
                own = _touch(_as_solid(other, other_hull), state, each, bounce(reduced, freq))
                gap = subtract(state.pos, other.pos)
                back = Wrench(
                    scale(own.force, -1.0), scale(add(own.torque, cross(gap, own.force)), -1.0)
                )
                return add_wrenches(so_far, add_wrenches(own, further(back, n_drones - places)))

            return jax.lax.cond(jnp.any(near(places)), touched, lambda f: f, so_far)

        def all_pairs() -> Wrench:
            return jax.lax.fori_loop(1, n_drones, meet, no_wrench(state.pos[0]))

        # Nobody is near to anybody, most of the time, and that takes half as many comparisons.
        nobody = jnp.zeros(state.pos[0].shape, bool)
        close = jax.lax.fori_loop(1, n_drones // 2 + 1, lambda i, c: c | near(i), nobody)
        return jax.lax.cond(jnp.any(close), all_pairs, lambda: no_wrench(state.pos[0]))

    return DroneForce("drone_contact", names, force, freq)


def _hull(drone: str) -> np.ndarray:
    """(1, 3) half of width and height of a drone, and height of its middle [m]."""
    points = contact_points(drone)
    (width, _, high), low = points.max(axis=0), points[:, 2].min()
    return np.array([[width, (high - low) / 2, (high + low) / 2]])


def _as_solid(state: BodyState, hull: Sequence[Array]) -> _Solid:
    """The hulls of drones."""
    axes, (width, height, middle) = rotation_matrix(state.quat), hull
    centre = scale((axes[0][2], axes[1][2], axes[2][2]), middle)
    turning = transform(axes, state.ang_vel)
    return _Solid(
        shape=jnp.asarray(Shape.box),
        size=(width, width, height),
        pos=add(state.pos, centre),
        axes=axes,
        vel=add(state.vel, cross(turning, centre)),
        turning=turning,
    )
