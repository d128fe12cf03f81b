"""The extended Kalman filter of the Crazyflie firmware, as pure functions.

M. Mueller, M. Hamer, R. D'Andrea, "Fusing ultra-wideband range measurements with accelerometers and
rate gyroscopes for quadrocopter state estimation", ICRA 2015, with the covariance correction of
M. Mueller, M. Hehn, R. D'Andrea, Journal of Guidance, Control, and Dynamics 40 (2017), and the
firmware's tuning, order of updates and bounds.

The filter estimates position, velocity in body axes and a small attitude error, which `settled`
moves into the attitude. Components are on the leading axes, worlds and drones on the others, so
that arithmetic vectorises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cos, log, pi
from typing import NamedTuple, TypeAlias, TypeVar

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import (
    Matrix3,
    Vec3,
    Vec4,
    add,
    cross,
    dot,
    rotate_quat,
    scale,
    subtract,
    transform,
)
from crazyflow_ros.xla.kernels import apart

GRAVITY = 9.81
"""Gravity that the filter assumes, m/s^2."""
PREDICTION_RATE = 100
"""Predictions per second; in between, the estimate stays as it is."""
N = 9
"""Number of estimated quantities."""
PIXELS_PER_RADIAN = 35.0 / 0.71674
"""Resolution of the flow deck's camera."""
FLOW_STD = 0.2
"""Error of a picture's motion that the firmware assumes by default, pixels."""

INITIAL_VARIANCES = (100.0, 100.0, 1.0, *[1e-4] * 6)
"""Variances of a filter that starts at an unknown place [m, m/s, rad]; x and y have the largest."""

T = TypeVar("T")
Row: TypeAlias = dict[int, Array | float]
"""A sparse row of a matrix: its numbers by column."""

_POS, _VEL, _ERROR = range(3), range(3, 6), range(6, 9)
_Z = 2
_NOISE_PERIOD = 1e-3  # s between two additions of process noise
_ACC_NOISE = (0.5, 0.5, 1.0)  # m/s^2
_GYRO_NOISE = 0.1  # rad/s
_REVERSION = 1e-3  # of the attitude of a drone on the floor to its initial one, per prediction
_MOST, _LEAST = 100.0, 1e-6  # of covariances, and of variances
_SETTLES = 1e-4  # rad, the smallest attitude error that is moved into the attitude
_MOST_POS, _MOST_VEL = 100.0, 10.0  # m, m/s; beyond these, the filter starts again

_LOWEST = 0.1  # m, height in the model of the flow, which is singular on the floor
_CONE = pi / 24  # half of the cone in which the range sensor finds the nearest point
_NEAR, _NEAR_STD, _FAR, _FAR_STD = 2.5, 2.5e-3, 4.0, 0.2  # m, its errors at two distances


class Belief(NamedTuple):
    """Estimate and covariance."""

    mean: Array
    """(9, ...) position [m, world], velocity [m/s, body], attitude error [rad, body]."""
    quat: Vec4
    """Attitude, xyzw."""
    cov: Array
    """(9, 9, ...) covariance of `mean`, symmetric."""

    @property
    def pos(self) -> Vec3:
        """Position, world frame, m."""
        return (self.mean[0], self.mean[1], self.mean[2])

    @property
    def vel(self) -> Vec3:
        """Velocity, body frame, m/s."""
        return (self.mean[3], self.mean[4], self.mean[5])


class Measurement(NamedTuple):
    """A measured number as a linear function of the mean."""

    row: Row
    """Derivative of the number by each element of the mean."""
    error: Array
    """Measured minus predicted value."""
    std: Array | float
    """Standard deviation of the measurement."""
    valid: Array | bool = True
    """Whether there is a measurement."""


Measure = Callable[[Belief], list[Measurement]]
"""Returns the measurements to process together, given the previous belief."""


def begun(pos: Vec3, quat: Vec4) -> Belief:
    """Return the belief of a filter that starts at rest at a pose, with `INITIAL_VARIANCES`."""
    zero = jnp.zeros_like(pos[0])
    variances = jnp.stack([zero + variance for variance in INITIAL_VARIANCES])
    return Belief(jnp.stack([*pos, *[zero] * 6]), quat, _diagonal(variances))


def certain(pos: Vec3, quat: Vec4, vel: Vec3) -> Belief:
    """Return the belief of a filter that starts with the true state; `vel` is in the body frame.

    It has no error yet, so its variances are the smallest ones. They then grow with its errors, up
    to those of a filter that has run for long.
    """
    zero = jnp.zeros_like(pos[0])
    variances = jnp.stack([zero + _LEAST] * N)
    return Belief(jnp.stack([*pos, *vel, *[zero] * 3]), quat, _diagonal(variances))


def predicted(
    belief: Belief,
    rot: Matrix3,
    gyro: Vec3,
    acc: Vec3,
    dt: float,
    flies: Array,
    initial: Vec4,
    gravity: float = GRAVITY,
    *,
    reverts: bool = True,
) -> Belief:
    """Return the belief after a time step, without the noise of `diffused`.

    Args:
        belief: The belief before.
        rot: Attitude of the belief as a rotation matrix.
        gyro: Mean angular velocity in the step, body frame, rad/s.
        acc: Mean specific force in the step, body frame, m/s^2.
        dt: Time step, s.
        flies: Whether the drone flies. If so, thrust is its only specific force.
        initial: Attitude to which a drone on the floor slowly reverts.
        gravity: Gravity, m/s^2, downwards.
        reverts: Whether it does; with a Lighthouse deck it does not.
    """
    # Bound, so that it is a constant of the compiled code.
    rows = apart(partial(_transition, gravity=gravity), belief.vel, rot, gyro, dt)
    moved = partial(_moved, gravity=gravity, reverts=reverts)
    mean, quat = apart(_new(moved), belief, rot, gyro, acc, dt, flies, initial)
    return Belief(mean, quat, _propagated(belief.cov, rows))


def diffused(belief: Belief, dt: float) -> Belief:
    """Return the belief with the process noise of a time step [s]."""
    periods, step = dt / _NOISE_PERIOD, _NOISE_PERIOD
    noise = [
        *((a * step * step) ** 2 for a in _ACC_NOISE),
        *((a * step) ** 2 for a in _ACC_NOISE),
        *[(_GYRO_NOISE * step) ** 2] * 3,
    ]
    variances = jnp.stack([jnp.zeros_like(belief.mean[0]) + periods * n for n in noise])
    return belief._replace(cov=apart(_bounded, belief.cov + _diagonal(variances)))


def updated(belief: Belief, measurement: Measurement) -> Belief:
    """Return the belief after a measurement, by the symmetric form of Joseph."""
    row, error, std, valid = measurement

    def gain(cov: Array, row: Row, std: Array | float, valid: Array | bool) -> tuple[Array, Array]:
        shared = _total({k: h * cov[:, k] for k, h in row.items()})
        variance = _total({k: h * shared[k] for k, h in row.items()}) + std * std
        return jnp.where(valid, shared / variance, 0.0), shared

    def corrected(cov: Array, row: Row, std: Array | float, gain: Array, shared: Array) -> Array:
        rest = cov - gain[:, None] * shared[None, :]
        along = _total({k: h * rest[:, k] for k, h in row.items()})
        return _bounded(rest + (std * std * gain - along)[:, None] * gain[None, :])

    def moved(mean: Array, gain: Array, error: Array, valid: Array | bool) -> Array:
        return mean + jnp.where(valid, gain * error, 0.0)  # without measurement it may be NaN

    kalman, shared = apart(gain, belief.cov, row, std, valid)
    cov = apart(corrected, belief.cov, row, std, kalman, shared)
    return belief._replace(mean=apart(moved, belief.mean, kalman, error, valid), cov=cov)


def settled(belief: Belief) -> Belief:
    """Return the belief with its attitude error moved into the attitude."""
    mean, quat, rows = apart(_new(_turned), belief.mean, belief.quat)
    return Belief(mean, quat, apart(_bounded, _propagated(belief.cov, rows)))


def out_of_bounds(belief: Belief) -> Array:
    """Return where the filter has to start again: the belief is out of bounds or not finite."""
    off = jnp.zeros_like(belief.mean[0], bool)
    for i, most in ((_POS, _MOST_POS), (_VEL, _MOST_VEL)):
        for k in i:
            off |= ~(jnp.abs(belief.mean[k]) <= most)
    return off


# Measurements.


def coordinate(belief: Belief, axis: int, value: Array, std: Array | float) -> Measurement:
    """Return the measurement of a coordinate of the position [m]; `axis` is 0, 1 or 2."""
    return Measurement({axis: 1.0}, value - belief.mean[axis], std)


def attitude(belief: Belief, quat: Vec4, std: Array | float) -> list[Measurement]:
    """Return three measurements of an attitude (xyzw), one for each axis.

    Args:
        belief: The belief.
        quat: The attitude.
        std: Standard deviation, rad.
    """
    (x, y, z, w), (a, b, c, d) = belief.quat, quat
    real = w * d + x * a + y * b + z * c
    imaginary = (
        w * a - x * d - y * c + z * b,
        w * b - y * d - z * a + x * c,
        w * c - z * d - x * b + y * a,
    )
    return [Measurement({6 + i: 1.0}, 2 * part / real, std) for i, part in enumerate(imaginary)]


def distance(belief: Belief, anchor: Vec3, value: Array, std: Array | float) -> Measurement:
    """Return the measurement of the distance [m] to a point [m]."""
    way = subtract(belief.pos, anchor)
    square = dot(way, way)
    apart_ = square > 0
    length = jnp.sqrt(jnp.where(apart_, square, 1.0))
    x, y, z = (w / length for w in way)
    row: Row = {0: jnp.where(apart_, x, 1.0), 1: y, 2: z}
    return Measurement(row, value - jnp.where(apart_, length, 0.0), std)


def height(
    belief: Belief,
    rot: Matrix3,
    value: Array,
    valid: Array | bool = True,
    floor: float = 0.0,
) -> Measurement:
    """Return the measurement of the distance to a floor [m], see `range_of_height`."""
    upright = rot[2][2]
    slope = range_of_height(upright)
    error = value - above(belief.mean[_Z], floor) * slope
    return Measurement({_Z: slope}, error, range_std(value), valid & (upright > 0.1))


def range_of_height(upright: Array, half: float = _CONE) -> Array:
    """Return the reading [m] of a range sensor at 1 m height that looks along the body's -z axis.

    It is the distance to the nearest point of the floor within a cone: M. Greiff, "Modelling and
    control of the Crazyflie quadrotor for aggressive and autonomous flight by optical flow driven
    state estimation", Lund 2017, chapter 6; the firmware assumes a cone of 15 degrees.

    Args:
        upright: Cosine of the tilt, above 0.
        half: Half the angle of the cone, rad.
    """
    tilts = upright < cos(half)  # otherwise the point below the drone is in view
    tilt = jnp.arccos(jnp.where(tilts, jnp.maximum(upright, 0.0), 0.5)) - half
    return jnp.where(tilts, 1 / jnp.cos(tilt), 1.0)


def range_std(value: Array) -> Array:
    """Return the standard deviation of a reading of the range sensor [m]."""
    growth = log(_FAR_STD / _NEAR_STD) / (_FAR - _NEAR)
    return _NEAR_STD * (1 + jnp.exp(growth * (value - _NEAR)))


def flow(
    belief: Belief,
    rot: Matrix3,
    gyro: Vec3,
    pixels: tuple[Array, Array],
    dt: float,
    floor: float = 0.0,
    std: Array | float = FLOW_STD,
    valid: Array | bool = True,
) -> list[Measurement]:
    """Return the measurement of how far the floor has moved through the flow deck's picture.

    Args:
        belief: The belief.
        rot: Attitude before the prediction, as a rotation matrix.
        gyro: Angular velocity, body frame, rad/s.
        pixels: Motion along the body's x and y axes in `dt`, in pixels.
        dt: Time of the motion, s.
        floor: Height of the floor, m.
        std: Standard deviation that the filter assumes, pixels.
        valid: Where there is a measurement.
    """
    scaling, upright = dt * PIXELS_PER_RADIAN, rot[2][2]
    z = jnp.maximum(above(belief.mean[_Z], floor), _LOWEST)
    found = []
    for axis, turn in ((0, -gyro[1]), (1, gyro[0])):
        vel = belief.mean[3 + axis]
        rate = vel * upright / z
        row: Row = {_Z: -scaling * rate / z, 3 + axis: scaling * upright / z}
        found.append(Measurement(row, pixels[axis] - scaling * (rate + turn), std, valid))
    return found


# Arithmetic.


def above(z: Array, floor: Array | float) -> Array:
    """Return the height of a place above the floor [m]; the same array for a floor at 0."""
    return z if isinstance(floor, float) and not floor else z - floor


def _new(fn: Callable[..., T]) -> Callable[..., T]:
    """Return a new function that calls `fn`.

    JAX caches traces by function, and traces with an `apart` inside hold values of their caller.
    """
    return lambda *args: fn(*args)


def _moved(
    belief: Belief,
    rot: Matrix3,
    gyro: Vec3,
    acc: Vec3,
    dt: float,
    flies: Array,
    initial: Vec4,
    *,
    gravity: float,
    reverts: bool,
) -> tuple[Array, Vec4]:
    """Return mean and attitude after a time step; see `predicted`."""
    vel = belief.vel
    force = (jnp.where(flies, 0.0, acc[0]), jnp.where(flies, 0.0, acc[1]), acc[2])
    way = transform(rot, add(scale(vel, dt), scale(force, dt * dt / 2)))
    x, y, z = add(belief.pos, way)
    change = subtract(subtract(force, cross(gyro, vel)), scale(rot[2], gravity))
    new = (x, y, z - gravity * dt * dt / 2, *add(vel, scale(change, dt)))
    turned = rotate_quat(belief.quat, scale(gyro, dt))
    keep = jnp.where(flies, 1.0, 1.0 - _REVERSION * reverts)
    quat = _unit(tuple(keep * q + (1 - keep) * q0 for q, q0 in zip(turned, initial)))
    return jnp.stack([*new, *(belief.mean[i] for i in _ERROR)]), quat


def _turned(mean: Array, quat: Vec4) -> tuple[Array, Vec4, list[Row]]:
    """Return mean and attitude without attitude error, and the rows that turn the covariance."""
    error = [mean[i] for i in _ERROR]
    sizes = [jnp.abs(e) for e in error]
    large = (sizes[0] > _SETTLES) | (sizes[1] > _SETTLES) | (sizes[2] > _SETTLES)
    x, y, z = (jnp.where(large, e, 0.0) for e in error)
    zero = jnp.zeros_like(x)
    rest = [mean[i] for i in (*_POS, *_VEL)]
    rows: list[Row] = [{i: 1.0} for i in (*_POS, *_VEL)]
    rows += _rotated_error((x / 2, y / 2, z / 2))
    return jnp.stack([*rest, zero, zero, zero]), rotate_quat(quat, (x, y, z)), rows


def _transition(vel: Vec3, rot: Matrix3, gyro: Vec3, dt: float, *, gravity: float) -> list[Row]:
    """Return the rows of the linear change of the mean in a time step."""
    rows: list[Row] = []
    for i in range(3):
        turn = scale(cross(vel, rot[i]), dt)
        rows.append({i: 1.0} | dict(zip((*_VEL, *_ERROR), (*scale(rot[i], dt), *turn))))
    for i, (spin, fall) in enumerate(zip(_cross_rows(gyro), _cross_rows(rot[2]))):
        row: Row = {3 + k: -dt * part for k, part in spin.items()} | {3 + i: 1.0}
        rows.append(row | {6 + k: -gravity * dt * part for k, part in fall.items()})
    return rows + _rotated_error(scale(gyro, dt / 2))


def _rotated_error(half: Vec3) -> list[Row]:
    """Return the rows for the attitude error after a rotation, to second order.

    Args:
        half: Half of its rotation vector, rad.
    """
    square = dot(half, half)
    rows: list[Row] = []
    for i, spin in enumerate(_cross_rows(half)):
        row: Row = {6 + k: half[i] * half[k] / 2 - part for k, part in spin.items()}
        rows.append(row | {6 + i: 1 + (half[i] * half[i] - square) / 2})
    return rows


def _cross_rows(v: Vec3) -> list[dict[int, Array]]:
    """Return the rows of the matrix of a vector product, without their zeros."""
    x, y, z = v
    return [{1: -z, 2: y}, {0: z, 2: -x}, {0: -y, 1: x}]


def _propagated(cov: Array, rows: list[Row]) -> Array:
    """Return the covariance after a linear change of the mean."""

    def left(cov: Array, rows: list[Row]) -> Array:
        return jnp.stack([_total({k: a * cov[k] for k, a in row.items()}) for row in rows])

    def right(half: Array, rows: list[Row]) -> Array:
        columns = [_total({k: a * half[:, k] for k, a in row.items()}) for row in rows]
        return jnp.stack(columns, axis=1)

    return apart(right, apart(left, cov, rows), rows)


def _bounded(cov: Array) -> Array:
    """Return the covariance, symmetric and within bounds."""
    cov = (cov + jnp.swapaxes(cov, 0, 1)) / 2
    cov = jnp.where(cov <= _MOST, cov, _MOST)  # also for NaN
    return jnp.where(_is_diagonal(cov.ndim - 2) & (cov < _LEAST), _LEAST, cov)


def _diagonal(variances: Array) -> Array:
    return jnp.where(_is_diagonal(variances.ndim - 1), variances[:, None], 0.0)


def _is_diagonal(n_more: int) -> Array:
    return jnp.eye(N, dtype=bool).reshape(N, N, *[1] * n_more)


def _total(terms: dict[int, Array]) -> Array:
    first, *others = terms.values()
    return sum(others, start=first)


def _unit(quat: tuple[Array, ...]) -> Vec4:
    x, y, z, w = quat
    norm = jnp.sqrt(x * x + y * y + z * z + w * w)
    return (x / norm, y / norm, z / norm, w / norm)
