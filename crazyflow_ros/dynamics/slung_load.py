"""A load that hangs on cables from the drones of a world.

The load is a point mass. A cable runs straight from a point of a drone's body to the load; it has
no mass and, within its natural length, no tension. Stretched, it is a spring with a damper (Kelvin
and Voigt). These are the equations of K. Sreenath, T. Lee, V. Kumar, "Geometric control and
differential flatness of a quadrotor UAV with a cable-suspended load", CDC 2013, with an elastic
cable.

Cables can be so stiff that they swing along their direction within a tick. So tension is implicit
in the velocities at the end of the tick, in the manner of C. Lacoursière, "Regularized, stabilized,
variational methods for multibodies", SIMS 2007, which also gives rigid cables: the step is stable
for any stiffness. A cable pulls its drone and the load with the same force in both directions for
the whole tick, so momentum is conserved to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Vec3,
    add,
    cross,
    dot,
    inverse,
    matrix_rows,
    normalize,
    rotation_matrix,
    scale,
    subtract,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.xla.kernels import apart

_AIR = 1.2
"""Density of the air, kg/m^3."""
_FRICTION = 0.5
"""Coefficient of friction between the load and the floor."""
_ITERATIONS = 3
"""Of Newton's method after the first, in ticks in which some of several cables slacken."""
_TINY = 1e-12
"""N, against division by zero."""


@dataclass(frozen=True)
class SlungLoad:
    """A load on a cable from each drone of a world, for `Sim(payload=...)`.

    Attributes:
        mass: kg.
        length: Natural length of the cables, m; a number, or one for each drone.
        stiffness: Force [N] by which a metre of stretch pulls, N/m; likewise.
        damping: N s/m; likewise. The force of damping is at most that of stiffness, so that tension
            begins at zero where a cable becomes taut.
        attachment: Where the cable is attached, from the centre of mass in the axes of the body, m;
            one point, or one for each drone.
        drag_area: Drag coefficient times cross section of the load, m^2.
    """

    mass: float = 0.005
    length: float | Sequence[float] = 0.5
    stiffness: float | Sequence[float] = 100.0
    damping: float | Sequence[float] = 0.05
    attachment: Sequence[float] | Sequence[Sequence[float]] = (0.0, 0.0, 0.0)
    drag_area: float = 0.0

    def __post_init__(self) -> None:
        """Check the figures.

        Raises:
            ValueError: A figure has another shape, is not finite, or is too small.
        """
        for name, ndim in (("mass", 0), ("drag_area", 0), *((name, 1) for name in _OF_CABLES)):
            value = np.asarray(getattr(self, name), float)
            least, rule = (0, "at least 0") if name in _MAY_BE_ZERO else (_TINY, "above 0")
            if value.ndim > ndim or not np.isfinite(value).all() or not (value >= least).all():
                shown = getattr(self, name)
                raise ValueError(f"SlungLoad: {name} must be finite and {rule}, got {shown!r}")
        points = np.asarray(self.attachment, float)
        if points.ndim not in (1, 2) or points.shape[-1] != 3 or not np.isfinite(points).all():
            given = f"got {self.attachment!r}"
            raise ValueError(f"SlungLoad: attachment must be points of 3 finite numbers, {given}")

    def figures(self, n_drones: int) -> dict[str, np.ndarray]:
        """Return the figures of one world, for a number of drones, in double precision.

        Returns:
            `mass` and `drag_area` (1, 1), `length`, `stiffness` and `damping` (n_drones, 1),
            `attachment` (n_drones, 3), unless all cables end in the centre of mass.

        Raises:
            ValueError: There are figures for another number of drones.
        """
        figures = {name: np.full((1, 1), getattr(self, name)) for name in ("mass", "drag_area")}
        for name in (*_OF_CABLES, "attachment"):
            value = np.asarray(getattr(self, name), float)
            if value.ndim > (name == "attachment"):
                if len(value) != n_drones:
                    raise ValueError(
                        f"SlungLoad: {name} is that of {len(value)} drones, there are {n_drones}"
                    )
                figures[name] = value.reshape(n_drones, -1)
            else:
                figures[name] = np.tile(value.reshape(1, -1), (n_drones, 1))
        if not figures["attachment"].any():
            del figures["attachment"]  # without torques, a step takes less time
        return figures


_OF_CABLES = ("length", "stiffness", "damping")
_MAY_BE_ZERO = ("damping", "drag_area")


class Suspension(NamedTuple):
    """A load and its cables: arrays (N, 1) of the load, and (N, M) of the cables."""

    pos: Vec3
    """World frame, m."""
    vel: Vec3
    """World frame, m/s."""
    mass: Array
    drag_area: Array
    length: Array
    stiffness: Array
    damping: Array
    attachment: Vec3 | None
    """See `SlungLoad` for these."""


class Pull(NamedTuple):
    """What the cables do during a tick."""

    tension: Array
    """(N, M) N."""
    acc: Vec3
    """What they add to the acceleration of the drones, world frame, m/s^2, (N, M)."""
    ang_acc: Vec3 | None
    """What they add to the angular acceleration of the drones, body frame, rad/s^2, (N, M)."""
    vel: Vec3
    """Velocity of the load after the tick, m/s, (N, 1)."""

    def on_drones(self, rate: BodyDerivative) -> BodyDerivative:
        """Add the pull to a derivative of the drones' state."""
        acc, ang_acc = add(rate.acc, self.acc), rate.ang_acc
        if self.ang_acc is not None:
            ang_acc = add(ang_acc, self.ang_acc)
        return rate._replace(acc=acc, ang_acc=ang_acc)


def pull(
    load: Suspension, state: BodyState, free: BodyDerivative, params: RigidBody, dt: float
) -> Pull:
    """Return the pull of the cables in the tick that follows.

    Args:
        load: The load before the tick.
        state: State of the drones before the tick.
        free: Its derivative without the cables.
        params: Parameters of the drones; the load has the same gravity and wind.
        dt: Length of the tick, s.
    """
    # In stages, because XLA would repeat all of it for each component of the result.
    free_vel = _without_cables(load, params, dt)
    unit, stretch = apart(_cable, load, state)
    lever = None if load.attachment is None else _lever(load.attachment, state, unit)
    of_drone, of_load = 1 / params.mass[..., 0], 1 / load.mass
    motion = (free_vel, unit, stretch, lever)
    tension = apart(partial(_tension, dt=dt), load, state, free, params, motion)
    force = total = scale(unit, tension)
    if tension.shape[-1] > 1:
        total = (_sum(force[0]), _sum(force[1]), _sum(force[2]))
    return Pull(
        tension,
        scale(force, of_drone),
        None if lever is None else scale(transform(matrix_rows(params.J_inv), lever), tension),
        subtract(free_vel, scale(total, of_load * dt)),
    )


def _cable(load: Suspension, state: BodyState) -> tuple[Vec3, Array]:
    """Return the directions of the cables, from the drones to the load, and their stretch, m."""
    offset = subtract(load.pos, state.pos)
    if load.attachment is not None:
        offset = subtract(offset, transform(rotation_matrix(state.quat), load.attachment))
    zero = jnp.zeros_like(offset[0])
    unit = normalize(offset, (zero, zero, zero - 1))
    return unit, dot(unit, offset) - load.length


def _lever(point: Vec3, state: BodyState, unit: Vec3) -> Vec3:
    """Return the torques by a newton of tension, body frame, m."""
    return cross(point, transform(transpose(rotation_matrix(state.quat)), unit))


def _tension(
    load: Suspension,
    state: BodyState,
    free: BodyDerivative,
    params: RigidBody,
    motion: tuple[Vec3, Vec3, Array, Vec3 | None],
    dt: float,
) -> Array:
    """Return the tensions during a tick, N; `motion` has what was computed before."""
    free_vel, unit, stretch, lever = motion
    spring = load.stiffness * stretch
    # How fast cables lengthen, now and at the end of the tick if they do not pull.
    rate = dot(unit, subtract(load.vel, state.vel))
    later = dot(unit, subtract(free_vel, add(state.vel, scale(free.acc, dt))))
    # Accelerations by a newton of tension: of the load, and of the upper ends.
    of_load, of_end = 1 / load.mass, 1 / params.mass[..., 0]
    if lever is not None:
        of_end += dot(lever, transform(matrix_rows(params.J_inv), lever))
        rate -= dot(lever, state.ang_vel)
        later -= dot(lever, add(state.ang_vel, scale(free.ang_acc, dt)))

    least = jnp.maximum(jnp.maximum(spring, load.damping * jnp.abs(rate)), _TINY)
    damping = load.damping * jnp.maximum(spring, 0) / least
    # How much of the spring's force is that at the end of the tick: nothing for slow vibrations,
    # which then keep their energy; all for a cable that is stiff within a tick.
    n_cables = spring.shape[-1]
    phase = load.stiffness * dt * dt * (of_end + n_cables * of_load)
    slope = load.stiffness * dt * phase / (4 + phase) + damping
    held = spring + slope * later
    if n_cables == 1:
        return jnp.maximum(held / (1 + slope * dt * (of_end + of_load)), 0)
    share = 1 / (1 + slope * dt * of_end)
    return _together(held * share, slope * share, unit, load.mass, dt)


def _without_cables(load: Suspension, params: RigidBody, dt: float) -> Vec3:
    """Return the velocity of the load after a tick in which it falls freely through the air."""
    gravity, wind = (_of_world(getattr(params, name, None)) for name in ("gravity_vec", "wind"))

    def slowed() -> Vec3:
        relative = subtract(load.vel, wind)
        square = dot(relative, relative)
        speed = jnp.sqrt(jnp.where(square == 0, 1.0, square)) * (square != 0)
        loss = 0.5 * _AIR * load.drag_area * speed * dt / load.mass
        return subtract(load.vel, scale(relative, loss / (1 + loss)))  # implicit, so stable

    vel = jax.lax.cond(jnp.any(load.drag_area > 0), slowed, lambda: load.vel)
    return add(vel, scale(gravity, dt))


def _of_world(array: Array | None) -> Vec3:
    """Return a vector that all drones of a world share, (...) or (N, 1); None is zero."""
    if array is None:
        array = jnp.zeros(3)
    x, y, z = (c[..., :1] if c.ndim else c for c in vector(array))
    return (x, y, z)


def _together(held: Array, gain: Array, unit: Vec3, mass: Array, dt: float) -> Array:
    """Return the tensions of cables that pull the same load, (N, M).

    If the cables change the velocity of the load by d, their tensions are `held + gain * unit . d`
    where that is positive; together they change it by d. Newton's method finds it: the equation
    consists of linear pieces, and the slope of each is symmetric and positive.
    """
    x, y, z = unit

    def tension(change: Vec3) -> Array:
        return held + gain * dot(unit, change)

    def solved(taut: Array) -> Vec3:
        """Return the change by the cables that are taut, as if they could also push."""
        weight = jnp.where(taut, dt, 0.0)
        a, b = weight * gain, -weight * held
        xx, yy, zz = (mass + _sum(a * c * c) for c in unit)
        xy, yz, zx = _sum(a * x * y), _sum(a * y * z), _sum(a * z * x)
        slope = ((xx, xy, zx), (xy, yy, yz), (zx, yz, zz))
        return transform(inverse(slope), (_sum(b * x), _sum(b * y), _sum(b * z)))

    def again() -> Vec3:
        found = change
        for _ in range(_ITERATIONS):
            found = solved(tension(found) > 0)
        return found

    change = solved(held > 0)
    slackens = (tension(change) > 0) != (held > 0)
    return jnp.maximum(tension(jax.lax.cond(jnp.any(slackens), again, lambda: change)), 0)


def _sum(array: Array) -> Array:
    """Return sums over the cables of a world, (N, M) to (N, 1)."""
    return jnp.sum(array, axis=-1, keepdims=True)


def moved(load: Suspension, vel: Vec3, dt: float, *, has_floor: bool) -> tuple[Vec3, Vec3]:
    """Return position and velocity of the load after a tick.

    Args:
        load: The load before the tick.
        vel: Its velocity after the tick, without the floor, m/s.
        dt: Length of the tick, s.
        has_floor: Whether the floor z = 0 stops the load, without a bounce and with friction.
    """
    if not has_floor:
        return add(load.pos, scale(vel, dt)), vel

    def stopped() -> Vec3:
        x, y, z = vel
        square = x * x + y * y
        still = square == 0
        speed = jnp.sqrt(jnp.where(still, 1.0, square))
        rest = jnp.maximum(1 - _FRICTION * jnp.maximum(-z, 0) / speed, 0)
        x, y = (jnp.where(stops, c * rest, c) for c in (x, y))
        return x, y, jnp.where(stops, jnp.maximum(z, 0), z)

    stops = load.pos[2] + vel[2] * dt < 0
    vel = jax.lax.cond(jnp.any(stops), stopped, lambda: vel)
    x, y, z = add(load.pos, scale(vel, dt))
    return (x, y, jnp.where(stops, 0.0, z)), vel
