"""Contact of drones with obstacles and with one another, with the contact law of the floor.

The contact points of a drone, some of them with a radius, collide with the nearest analytic shape.
Objects thinner than half the distance travelled in a tick may be passed through.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyDerivative,
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
from crazyflow_ros.dynamics.forces.encounters import encounters
from crazyflow_ros.dynamics.forces.external import DroneContact, built_once, each_of
from crazyflow_ros.dynamics.forces.floor import contact_points, rows, travel
from crazyflow_ros.dynamics.forces.impulses import Body, Touch, body, held, held_alone
from crazyflow_ros.dynamics.forces.jets import FEW
from crazyflow_ros.dynamics.obstacles import Obstacles, Shape, signed_distance
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.xla.kernels import apart

T = TypeVar("T")

_NOTHING = 1e3  # m, gap of a point that is near nothing
_BLOCK = 32  # drones
_ROUNDNESS = 0.8  # radius over the hull's half height; feet and tips touch first


class _Solid(NamedTuple):
    """A shape with its pose."""

    shape: Array
    size: Vec3
    pos: Vec3
    axes: Matrix3


class _Found(NamedTuple):
    """The nearest surface to each sphere of the drones; spheres are the first axis."""

    touch: Touch
    arm: Vec3
    """From the centre of mass to the contact point of the sphere, m."""


def contact_spheres(drone: str) -> np.ndarray:
    """Return (13, 4) centres (body frame, m) and radii [m] of the spheres that touch obstacles.

    These are the points that touch the floor, with radius 0, and spheres in the middle and at the
    middle of each side, which leave no gaps.
    """
    points, ((width, height, middle),) = contact_points(drone), _hull(drone)
    radius = _ROUNDNESS * height
    side = width - radius
    centres = [(0, 0), (side, 0), (-side, 0), (0, side), (0, -side)]
    spheres = [(x, y, middle, radius) for x, y in centres]
    return np.array([*np.pad(points, ((0, 0), (0, 1))), *spheres])


def _reach(spheres: Sequence[np.ndarray]) -> float:
    """Return the radius of the largest drone around its centre of mass [m]."""
    return max(float((np.linalg.norm(s[:, :3], axis=-1) + s[:, 3]).max()) for s in spheres)


def _nearest(
    solid: _Solid, pos: Vec3, to_world: Matrix3, spheres: tuple[Array, ...]
) -> tuple[Array, Vec3, Vec3]:
    """Compute where a shape and the spheres of drones are nearest, in parts that are stored.

    Args:
        solid: The shape.
        pos: Positions of the drones.
        to_world: Attitudes of the drones.
        spheres: The four columns of `contact_spheres`, in rows.

    Returns:
        Gaps, outward normals of the shape, and vectors from the centres of mass to the points.
    """
    *centre, radius = spheres

    def inside(pos: Vec3, to_world: Matrix3, solid: _Solid) -> tuple[Vec3, Vec3]:
        arm = transform(to_world, (centre[0], centre[1], centre[2]))
        place = add(subtract(pos, solid.pos), arm)
        return arm, transform(transpose(solid.axes), place)

    def outside(outwards: Vec3, arm: Vec3, axes: Matrix3) -> tuple[Vec3, Vec3]:
        normal = transform(axes, outwards)
        return normal, subtract(arm, scale(normal, radius))

    arm, place = apart(inside, pos, to_world, solid)
    distance, outwards = apart(signed_distance, solid.shape, solid.size, place)
    return distance - radius, *apart(outside, outwards, arm, solid.axes)


@built_once
def obstacle_contact(drone: str | Sequence[str], freq: float) -> DroneContact:
    """Build the contact of drones with `params.obstacles`, if there are any.

    Args:
        drone: Name of the drone, or of each drone of a world, for its size.
        freq: Step frequency in Hz.

    Raises:
        ValueError: Unknown drone, or a frequency that is not positive.
    """
    names = each_of(drone)
    each = [contact_spheres(name) for name in names]
    reach = _reach(each)

    def law(state: BodyState, free: BodyDerivative, params: RigidBody) -> Wrench:
        like = state.pos[0]
        if params.obstacles is None or params.obstacles.n_slots == 0:
            return no_wrench(like)

        def nearest(so_far: _Found, obstacle: Obstacles) -> tuple[_Found, None]:
            pos, axes = vector(obstacle.pos), rotation_matrix(split(obstacle.quat))  # type: ignore[arg-type]
            solid = _Solid(obstacle.shape, vector(obstacle.size), pos, axes)
            still = (jnp.zeros_like(pos[0]),) * 3
            vel, turning = (
                still if v is None else vector(v) for v in (obstacle.vel, obstacle.ang_vel)
            )
            centre = transform(transpose(axes), subtract(state.pos, pos))
            away, _ = signed_distance(solid.shape, solid.size, centre)

            def nearer(so_far: _Found, state: BodyState, solid: _Solid) -> _Found:
                to_world = apart(rotation_matrix, state.quat)
                gap, normal, arm = _nearest(solid, state.pos, to_world, rows(each, like))
                from_solid = add(subtract(state.pos, solid.pos), arm)
                there = add(vel, cross(turning, from_solid))
                is_nearer = gap < so_far.touch.gap
                found = _Found(Touch(gap, normal, there), arm)
                return jax.tree.map(partial(jnp.where, is_nearer), found, so_far)

            near = away < reach + travel(state.vel, freq) + travel(vel, freq)
            return jax.lax.cond(jnp.any(near), nearer, lambda f, *_: f, so_far, state, solid), None

        zero = jnp.zeros((len(each[0]), *like.shape), like.dtype)
        nothing = Touch(zero + _NOTHING, (zero, zero, zero + 1.0), (zero, zero, zero))
        start = _Found(nothing, (zero, zero, zero))
        found, _ = jax.lax.scan(nearest, start, params.obstacles.slots_first)

        def hold() -> Wrench:
            return held_alone(found.touch, body(state, free, params, freq), found.arm, freq)

        return jax.lax.cond(
            jnp.any(found.touch.gap < _NOTHING), hold, lambda: no_wrench(state.pos[0])
        )

    return DroneContact("obstacle_contact", names, freq, law, is_shared=True)


@built_once
def drone_contact(drone: str | Sequence[str], freq: float) -> DroneContact:
    """Build the contact of the drones of a world with one another; their hulls are boxes.

    Args:
        drone: Name of the drone, or of each drone of a world, for its size.
        freq: Step frequency in Hz.

    Raises:
        ValueError: Unknown drone, or a frequency that is not positive.
    """
    meetings = DroneMeetings(drone, freq)

    def law(state: BodyState, free: BodyDerivative, params: RigidBody) -> Wrench:
        n_drones = state.pos[0].shape[-1] if state.pos[0].ndim else 1
        if n_drones == 1:
            return no_wrench(state.pos[0])
        close = meetings.among(state, None)
        return jax.lax.cond(
            jnp.any(close),
            lambda: meetings.wrench(state, free, params, close),
            lambda: no_wrench(state.pos[0]),
        )

    return DroneContact("drone_contact", each_of(drone), freq, law, is_shared=True)


class DroneMeetings:
    """The contacts of drones with one another, by the difference of their numbers.

    Differences count modulo the number of drones, so those up to half of it cover all pairs.

    Args:
        drone: See `drone_contact`.
        freq: Step frequency in Hz.
    """

    def __init__(self, drone: str | Sequence[str], freq: float) -> None:
        names = each_of(drone)
        self._freq = freq
        self._spheres = [contact_spheres(name) for name in names]
        self._hulls = [_hull(name) for name in names]
        self._reach = _reach(self._spheres)

    def among(self, state: BodyState, order: Array | None) -> Array:
        """Return at which differences drones may touch, (M // 2 + 1,); for few, which drones may.

        Args:
            state: State of the drones.
            order: See `encounters`.
        """
        n_drones = state.pos[0].shape[-1]
        if n_drones > FEW:
            return encounters(state.pos, self._reach + travel(state.vel, self._freq), order)
        nobody = jnp.zeros(state.pos[0].shape, bool)
        return jax.lax.fori_loop(
            1, n_drones // 2 + 1, lambda i, c: c | self._near(state, i), nobody
        )

    def _near(self, state: BodyState, places: Array) -> Array:
        """Return which drones may touch the drone `places` further on."""
        pos, way = _further((state.pos, travel(state.vel, self._freq)), places)
        gap = subtract(pos, state.pos)
        return dot(gap, gap) < (2 * self._reach + way + travel(state.vel, self._freq)) ** 2

    def wrench(
        self, state: BodyState, free: BodyDerivative, params: RigidBody, close: Array
    ) -> Wrench:
        """Return the wrenches of the contacts, from the motion without them and `among`."""
        like, freq = state.pos[0], self._freq
        n_drones = like.shape[-1]
        few = n_drones <= FEW
        width, height, middle = (h[0] for h in rows(self._hulls, like))
        spheres = rows(self._spheres, like)
        if few:
            width, height, middle = (
                jnp.broadcast_to(h, like.shape) for h in (width, height, middle)
            )
            spheres = tuple(jnp.broadcast_to(s, (len(s), *like.shape)) for s in spheres)
        both_pushed = _all_pushed if few else _some_pushed

        def meet(places: Array, so_far: Wrench) -> Wrench:
            close = self._near(state, places)

            def touched(so_far: Wrench) -> Wrench:
                own = body(state, params.pushed(state, free, so_far), params, freq)
                drones = _Hulled(own, state.pos, (width, height, middle), spheres)
                push, pull = both_pushed(freq, drones, places, close)
                # A drone may be in two of these pairs. Halving both wrenches gains
                # no energy, because neither does alone; with two drones per pair,
                # both halves are of the same pair.
                shared = _further(close, n_drones - places) | _further(close, places)
                share = jnp.where(shared, 0.5, 1.0).astype(like.dtype)
                push, pull = (jax.tree.map(lambda x: x * share, w) for w in (push, pull))
                return add_wrenches(so_far, add_wrenches(push, _further(pull, n_drones - places)))

            return jax.lax.cond(jnp.any(close), touched, lambda f: f, so_far)

        if few:
            return jax.lax.fori_loop(1, n_drones // 2 + 1, meet, no_wrench(like))
        return jax.lax.fori_loop(
            *(1, n_drones // 2 + 1),
            lambda i, so_far: jax.lax.cond(close[i], meet, lambda _, f: f, i, so_far),
            no_wrench(like),
        )


class _Hulled(NamedTuple):
    """Drones with the shapes that collide."""

    body: Body
    pos: Vec3
    hull: Vec3
    """Half width, half height, and the height of the middle."""
    spheres: tuple[Array, ...]
    """The four columns of `contact_spheres`, in rows."""


def _pushed(freq: float, mine: _Hulled, others: _Hulled) -> tuple[Wrench, Wrench]:
    """Return the wrenches on `mine` and on `others` from the contacts between each pair of them."""
    axis = -1 - mine.pos[0].ndim
    bodies, pos, hulls, balls = jax.tree.map(lambda x, y: jnp.stack((x, y), axis), mine, others)
    # The spheres of both drones, each against the hull of the other.
    here = pos, bodies.to_world, hulls
    (place, to_world, _), there = (jax.tree.map(lambda x, i=i: x[::i], here) for i in (1, -1))
    gap, normal, arm = _nearest(_as_solid(*there), place, to_world, balls)
    is_own = jnp.eye(2, dtype=bool).reshape(2, 2, *[1] * mine.pos[0].ndim)
    between = subtract(place, there[0])
    arms = tuple(
        jnp.where(is_own, x[:, :, None], (x + y)[:, :, None]) for x, y in zip(arm, between)
    )
    signs = jnp.broadcast_to(jnp.where(is_own, 1, -1), arms[0].shape).astype(gap.dtype)
    points = Touch(gap, normal, (jnp.zeros_like(gap),) * 3), arms, signs
    touch, arm, sign = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), points)
    wrenches = held(touch, bodies, arm, sign, freq)
    push, pull = (jax.tree.map(lambda x, i=i: x[i], wrenches) for i in (0, 1))
    return push, pull


def _all_pushed(freq: float, drones: _Hulled, places: Array, _: Array) -> tuple[Wrench, Wrench]:
    """Return the wrenches on drones, and on those that are `places` further on."""
    return _pushed(freq, drones, _further(drones, places))


def _some_pushed(
    freq: float, drones: _Hulled, places: Array, close: Array
) -> tuple[Wrench, Wrench]:
    """Return the same for many drones, few of which are close to the other one of their pair.

    All drones are in one array; only its blocks that contain close drones are computed.
    """
    n_drones = close.shape[-1]
    leaves, of_state = jax.tree.flatten((drones.body, drones.pos))
    states = jnp.stack(leaves)
    twice = jnp.concatenate((states, states), axis=-1)

    def part(x: Array, start: Array) -> Array:
        """Return the values of a block, from values for each drone or one for all."""
        if x.shape[-1] == 1:
            return jnp.broadcast_to(x, (*x.shape[:-1], _BLOCK))
        if x.shape[-1] == n_drones:
            x = jnp.concatenate((x, x), axis=-1)
        return jax.lax.dynamic_slice_in_dim(x, start, _BLOCK, axis=-1)

    def hulled(start: Array) -> _Hulled:
        own = jax.tree.unflatten(of_state, list(part(twice, start)))
        return _Hulled(*own, *jax.tree.map(partial(part, start=start), drones[2:]))

    def block(k: Array, found: Array) -> Array:
        start = jnp.minimum(k * _BLOCK, n_drones - _BLOCK)

        def touch(found: Array) -> Array:
            new = _pushed(freq, hulled(start), hulled(start + places))
            values = jnp.stack(jax.tree.leaves(new))
            return jax.lax.dynamic_update_slice_in_dim(found, values, start, axis=-1)

        return jax.lax.cond(jnp.any(part(close, start)), touch, lambda f: f, found)

    nothing = no_wrench(drones.pos[0])
    forces, of_two = jax.tree.flatten((nothing, nothing))
    found = jax.lax.fori_loop(0, -(-n_drones // _BLOCK), block, jnp.stack(forces))
    pushed: tuple[Wrench, Wrench] = jax.tree.unflatten(of_two, list(found))
    return pushed


def _further(tree: T, places: Array) -> T:
    """Give each drone the values of the drone that is `places` further on."""

    def turn(x: Array) -> Array:
        twice = jnp.concatenate((x, x), axis=-1)
        return jax.lax.dynamic_slice_in_dim(twice, places, x.shape[-1], axis=-1)

    return jax.tree.map(turn, tree)


def _hull(drone: str) -> np.ndarray:
    """Return (1, 3) half width, half height, and the height of the middle of a drone [m]."""
    points = contact_points(drone)
    (width, _, high), low = points.max(axis=0), points[:, 2].min()
    return np.array([[width, (high - low) / 2, (high + low) / 2]])


def _as_solid(pos: Vec3, axes: Matrix3, hull: Vec3) -> _Solid:
    """Return the hulls of drones as boxes."""
    width, height, middle = hull
    centre = scale((axes[0][2], axes[1][2], axes[2][2]), middle)
    return _Solid(jnp.asarray(Shape.box), (width, width, height), add(pos, centre), axes)
