"""Contact impulses that stop bodies within a tick.

Each tick computes impulses after which no point moves further into a surface, and none slides that
friction can hold. They are found point by point in repeated sweeps (projected Gauss-Seidel:
J. J. Moreau, M. Jean, "Numerical treatment of contact and friction: the contact dynamics method",
1996). Unlike spring-damper forces, they need no stiffness that the tick could not resolve, and
static friction does not creep.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Matrix3,
    Vec3,
    Wrench,
    add,
    cross,
    dot,
    matrix_rows,
    normalize,
    rotation_matrix,
    scale,
    transform,
    transpose,
)
from crazyflow_ros.dynamics.forces import SAG
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.xla.kernels import apart

T = TypeVar("T")

FRICTION = 0.6  # Coulomb coefficient, plastic on a hard floor
_RESTITUTION = 0.4  # ratio of rebound to impact speed beyond the next constant
_SLOWEST_BOUNCE = 0.1  # m/s
# A point within one tick of the surface rebounds, with half a tick of margin: otherwise the tick
# after the next would find it deeper in the surface.
_BOUNCES_WITHIN = 1.5  # ticks
# Share of the distance to the surface that is covered in a tick. With explicit Euler, the position
# lags by a tick; above a quarter the two oscillate.
_APPROACH = 0.25
_FASTEST_RECOVERY = 0.3  # m/s, maximum speed out of a surface
_SWEEPS = 12  # each leaves a third to a half of the remaining error
# Points at rest that are farther away than this, and points that are this many times too slow to
# arrive within a tick, are ignored.
_NEAR = 2e-3  # m
_SUDDEN = 8
_LEAST = 1e-9  # N s, keeps the direction of friction defined


class Body(NamedTuple):
    """Motion and inertia of a drone in a contact."""

    vel: Vec3
    """World frame, like all other fields unless stated."""
    turning: Vec3
    """Angular velocity, body frame."""
    free_vel: Vec3
    """Velocity at the end of the tick without the contact."""
    free_turning: Vec3
    inverse_mass: Array
    inverse_inertia: Matrix3
    """Body frame."""
    to_world: Matrix3


class Touch(NamedTuple):
    """K points near a surface."""

    gap: Array
    """Distance from the surface, negative inside, m."""
    normal: Vec3
    vel: Vec3
    """Velocity of the surface there, m/s; zero for the surface of a body."""


class _Rows(NamedTuple):
    """Effect of impulses along the normal and two directions along the surface.

    For K points and S bodies: the first axes are K, S and 3, or K and 3.
    """

    pull: Vec3
    """Unit impulse on a body: the direction, or its opposite."""
    lever: Vec3
    """Moment of the unit impulse, m, body frame."""
    shift: Vec3
    """Change of the velocity by the unit impulse, 1/kg."""
    turn: Vec3
    """Change of the angular velocity by the unit impulse, 1/(kg m), body frame."""
    mass: Array
    """Effective mass that resists an impulse, kg."""
    vel: Array
    """Change of velocity that the impulses must achieve, m/s."""


_Given = tuple[Vec3, Vec3]  # impulse, and its moment in the body frame, of S bodies


def body(state: BodyState, free: BodyDerivative, params: RigidBody, freq: float) -> Body:
    """Return the motion and inertia of drones whose derivative without the contact is `free`."""
    like = state.pos[0]
    inverse_mass, inertia, to_world = jax.tree.map(
        lambda x: jnp.broadcast_to(x, like.shape),
        (1 / params.mass[..., 0], matrix_rows(params.J_inv), rotation_matrix(state.quat)),
    )
    return Body(
        *(state.vel, state.ang_vel),
        add(state.vel, scale(free.acc, 1 / freq)),
        add(state.ang_vel, scale(free.ang_acc, 1 / freq)),
        *(inverse_mass, inertia, to_world),
    )


def held(touch: Touch, bodies: Body, arm: Vec3, sign: Array, freq: float) -> Wrench:
    """Return the wrenches of surfaces on bodies that touch them, in a tick of 1 / `freq`.

    Args:
        touch: The K points.
        bodies: One body, or two that touch each other, S, on the first axis.
        arm: From the centres of mass to the points, (K, S, ...).
        sign: 1 for the body that a normal points to, -1 for the other, (K, S, 1, ...).
        freq: Step frequency in Hz.

    Returns:
        The wrench on each of the S bodies.
    """
    rows = _rows(touch, bodies, arm, sign, freq)
    near = apart(partial(_near, freq), touch, bodies, arm)
    matters = near.any(axis=tuple(range(1, near.ndim)))

    def press(i: Array, carry: tuple[_Given, Array]) -> tuple[_Given, Array]:
        given, impulses = carry
        row, old = jax.tree.map(
            lambda x: jax.lax.dynamic_index_in_dim(x, i, keepdims=False),
            (rows, impulses),
        )
        push = apart(_pushing, _along(row, slice(1)), old[:1], given)
        given = _more(given, _along(row, slice(1)), push - old[:1])
        grip = apart(_gripping, _along(row, slice(1, 3)), old[1:], push, given)
        given = _more(given, _along(row, slice(1, 3)), grip - old[1:])
        new = jnp.concatenate((push, grip))
        return given, jax.lax.dynamic_update_index_in_dim(impulses, new, i, 0)

    def press_if_near(i: Array, carry: tuple[_Given, Array]) -> tuple[_Given, Array]:
        pressed: tuple[_Given, Array] = jax.lax.cond(
            matters[i], press, lambda _, carry: carry, i, carry
        )
        return pressed

    def sweep(_: Array, carry: tuple[_Given, Array]) -> tuple[_Given, Array]:
        return jax.lax.fori_loop(0, len(near), press_if_near, carry)

    nothing = (jnp.zeros_like(bodies.inverse_mass),) * 3
    start = (nothing, nothing), jnp.zeros_like(rows.mass)
    (impulse, moment), _ = jax.lax.fori_loop(0, _SWEEPS, sweep, start)
    return Wrench(scale(impulse, freq), transform(bodies.to_world, scale(moment, freq)))


def held_alone(touch: Touch, body: Body, arm: Vec3, freq: float) -> Wrench:
    """Return `held` for one body, without the axis of bodies."""
    bodies, wrench_of = jax.tree.map(lambda x: x[None], body), partial(jax.tree.map, lambda x: x[0])
    arm = jax.tree.map(lambda x: x[:, None], arm)
    wrench: Wrench = wrench_of(held(touch, bodies, arm, jnp.ones_like(arm[0]), freq))
    return wrench


def _rows(touch: Touch, bodies: Body, arm: Vec3, sign: Array, freq: float) -> _Rows:
    """Compute the rows in parts, because each result is stored."""

    def each(of_bodies: T) -> T:
        """Add an axis for the directions."""
        return jax.tree.map(lambda x: x[:, None], of_bodies)

    def pulls(normal: Vec3, sign: Array) -> Vec3:
        # Any two directions along the surface will do, because friction is isotropic.
        zero, one = jnp.zeros_like(normal[0]), jnp.ones_like(normal[0])
        steep = jnp.abs(normal[2]) > 0.7
        beside = (jnp.where(steep, one, zero), zero, jnp.where(steep, zero, one))
        second = normalize(cross(normal, beside), (zero, one, zero))
        first = cross(second, normal)
        x, y, z = (jnp.stack(parts, axis=1)[:, None] for parts in zip(normal, first, second))
        return scale((x, y, z), sign[:, :, None])

    def levers(pull: Vec3, arm: Vec3, to_world: Matrix3) -> Vec3:
        x, y, z = arm
        moment = cross((x[:, :, None], y[:, :, None], z[:, :, None]), pull)
        return transform(transpose(each(to_world)), moment)

    def turns(inverse_inertia: Matrix3, lever: Vec3) -> Vec3:
        return transform(each(inverse_inertia), lever)

    def shifts(pull: Vec3, inverse_mass: Array) -> Vec3:
        return scale(pull, each(inverse_mass))

    def masses(pull: Vec3, shift: Vec3, lever: Vec3, turn: Vec3) -> Array:
        return 1 / _sum(dot(pull, shift) + dot(lever, turn))

    def vels(touch: Touch, pull: Vec3, lever: Vec3, sign: Array, bodies: Body) -> Array:
        x, y, z = (v[:, None] for v in touch.vel)
        p, q, r = (part[:, 0] * sign[:, 0, None] for part in pull)
        surface = dot((p, q, r), (x, y, z))
        vel, turning, free_vel, free_turning = each(bodies[:4])
        now = _sum(dot(pull, vel) + dot(lever, turning)) - surface
        free = _sum(dot(pull, free_vel) + dot(lever, free_turning)) - surface
        out = _wanted(touch.gap + SAG, -now[:, 0], -free[:, 0], freq)
        return jnp.concatenate(((out - free[:, 0])[:, None], -free[:, 1:]), axis=1)

    pull = apart(pulls, touch.normal, sign)
    lever = apart(levers, pull, arm, bodies.to_world)
    turn = apart(turns, bodies.inverse_inertia, lever)
    shift = apart(shifts, pull, bodies.inverse_mass)
    mass = apart(masses, pull, shift, lever, turn)
    vel = apart(vels, touch, pull, lever, sign, bodies)
    return _Rows(pull, lever, shift, turn, mass, vel)


def _along(row: _Rows, directions: slice) -> _Rows:
    """Return the rows of some directions of a point."""
    pull, lever, shift, turn = jax.tree.map(lambda x: x[:, directions], row[:4])
    return _Rows(pull, lever, shift, turn, row.mass[directions], row.vel[directions])


def _near(freq: float, touch: Touch, bodies: Body, arm: Vec3) -> Array:
    """Return which points may receive an impulse in this tick, regardless of the other points."""
    way = _length(bodies.vel) + _length(bodies.free_vel)
    way += (_length(bodies.turning) + _length(bodies.free_turning)) * _length(arm)
    return touch.gap < _NEAR + _SUDDEN / freq * (_length(touch.vel) + _sum(way))


def _wanted(gap: Array, approach: Array, later: Array, freq: float) -> Array:
    """Return the minimum velocity out of a surface at the end of a tick, m/s.

    Args:
        gap: Distance from the resting depth, m.
        approach: Velocity towards the surface, m/s.
        later: Velocity towards the surface at the end of the tick without the contact, m/s.
        freq: Step frequency in Hz.
    """
    settle = jnp.minimum(-_APPROACH * freq * gap, _FASTEST_RECOVERY)
    # At most a share of the smaller velocity, so that a bounce gains no energy.
    bounce = _RESTITUTION * (jnp.minimum(approach, later) - _SLOWEST_BOUNCE)
    arrives = gap * freq < _BOUNCES_WITHIN * approach
    hits = jnp.where(arrives, jnp.maximum(bounce, settle), -gap * freq)
    return jnp.where(approach > _SLOWEST_BOUNCE, hits, settle)


def _lacking(row: _Rows, given: _Given) -> Array:
    """Return the additional impulses that give a point its desired velocity."""
    impulse, moment = jax.tree.map(lambda x: x[:, None], given)
    reached = dot(row.shift, impulse) + dot(row.turn, moment)
    return (row.vel - reduce(jnp.add, list(reached))) * row.mass


def _pushing(row: _Rows, push: Array, given: _Given) -> Array:
    """Return the impulse along the normal, which cannot pull."""
    return jnp.maximum(push + _lacking(row, given), 0.0)


def _gripping(row: _Rows, grip: Array, push: Array, given: _Given) -> Array:
    """Return the impulses along the surface, within the limit of friction."""
    first, second = wanted = grip + _lacking(row, given)
    size = jnp.sqrt(first * first + second * second + _LEAST**2)
    return wanted * jnp.minimum(FRICTION * push / size, 1.0)


def _more(given: _Given, row: _Rows, impulses: Array) -> _Given:
    """Add impulses along the directions of a row to the sums `given`."""
    return jax.tree.map(
        lambda sum_, x: reduce(jnp.add, [sum_, *jnp.moveaxis(x * impulses, 1, 0)]),
        given,
        (row.pull, row.lever),
    )


def _sum(rows: Array) -> Array:
    """Sum over the bodies, the second axis."""
    # XLA on the CPU vectorises only sums of slices.
    return reduce(jnp.add, [rows[:, i] for i in range(rows.shape[1])])


def _length(v: Vec3) -> Array:
    x, y, z = jax.lax.stop_gradient(v)
    return jnp.abs(x) + jnp.abs(y) + jnp.abs(z)
