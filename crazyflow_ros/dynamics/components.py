"""Vectors and rotations as tuples of component arrays.

A 3-vector per drone is a tuple of three arrays of one shape, a quaternion (xyzw) a tuple of four.
In this form XLA fuses a whole physics tick into one pass over the batch; `(..., 3, 3)` matrices and
their products would each become a separate kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import floor, frexp, ldexp, pi, tan
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.elementwise import (
    arctan2,
    clip,
    library,
    maximum,
    rsqrt,
    sqrt,
    where,
    zeros_like,
)
from crazyflow_ros.xla.kernels import apart

__all__ = [
    "Matrix3",
    "PerRotor",
    "Vec3",
    "Vec4",
    "add",
    "add_wrenches",
    "combined",
    "cross",
    "dot",
    "drag_force",
    "heading",
    "inverse",
    "matrix_rows",
    "no_wrench",
    "normalize",
    "quat_from_rpy",
    "quat_rate",
    "rotate_quat",
    "rotation_matrix",
    "rotation_matrix_from_rpy",
    "rpy_from_rotation_matrix",
    "scale",
    "split",
    "stack",
    "subtract",
    "total",
    "transform",
    "transpose",
    "vector",
]

Vec3: TypeAlias = tuple[Array, Array, Array]
Vec4: TypeAlias = tuple[Array, Array, Array, Array]
PerRotor: TypeAlias = tuple[Array, ...]
"""One array for each rotor."""
Matrix3: TypeAlias = tuple[Vec3, Vec3, Vec3]


class BodyState(NamedTuple):
    """State of a multirotor: each field a tuple of component arrays of one shape."""

    pos: Vec3
    """Centre of mass, world frame, m."""
    quat: Vec4
    """Body to world rotation, xyzw, unit norm."""
    vel: Vec3
    """World frame, m/s."""
    ang_vel: Vec3
    """Body frame, rad/s."""
    rotor_vel: PerRotor
    """RPM, or as defined by the model."""


class BodyDerivative(NamedTuple):
    """Time derivative of a `BodyState`."""

    vel: Vec3
    ang_vel: Vec3
    """Body rates, rad/s: the derivative of the attitude on SO(3)."""
    acc: Vec3
    ang_acc: Vec3
    rotor_acc: PerRotor
    """RPM/s, or as defined by the model."""


class Wrench(NamedTuple):
    """Force [N] and torque [N m] on the centre of mass, both in the world frame."""

    force: Vec3
    torque: Vec3


def split(array: Any) -> tuple[Array, ...]:
    """Split an array of any library along its last axis: (..., k) to k arrays of shape (...)."""
    if isinstance(array, Array):  # its derivative stacks; that of slices adds and pads
        return tuple(jnp.unstack(array, axis=-1))
    return tuple(array[..., i] for i in range(array.shape[-1]))


def vector(array: Array) -> Vec3:
    """Split a vector: (..., 3) to three arrays of shape (...)."""
    x, y, z = split(array)
    return (x, y, z)


def stack(components: tuple[Array, ...]) -> Array:
    """Stack components, the inverse of `split`."""
    return library(*components).stack(components, axis=-1)


def add(a: Vec3, b: Vec3) -> Vec3:
    """Return the sum of two vectors."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def combined(operation: Callable[[Array, Array], Array], array: Array, axis: int) -> Array:
    """Return what an operation, such as an addition, makes of all numbers along an axis.

    It combines halves: XLA would pass a large reduction to a library, which kernels cannot call.
    """
    while (n := array.shape[axis]) > 1:
        first, second, rest = jnp.split(array, [n // 2, n // 2 * 2], axis=axis)
        half = operation(first, second)
        array = jnp.concatenate([half, rest], axis=axis) if n % 2 else half
    return jnp.squeeze(array, axis)


def total(array: Array) -> Array:
    """Return the sum along the second to last axis."""
    return combined(jnp.add, array, -2)


def no_wrench(like: Array) -> Wrench:
    """Return a wrench of zeros, with the shape of `like`."""
    zero = jnp.zeros_like(like)
    return Wrench((zero, zero, zero), (zero, zero, zero))


def add_wrenches(a: Wrench, b: Wrench) -> Wrench:
    """Return the sum of two wrenches."""
    return Wrench(add(a.force, b.force), add(a.torque, b.torque))


def scale(a: Vec3, factor: Array | float) -> Vec3:
    """Multiply a vector by a scalar."""
    return (a[0] * factor, a[1] * factor, a[2] * factor)


def dot(a: Vec3, b: Vec3) -> Array:
    """Return the scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def subtract(a: Vec3, b: Vec3) -> Vec3:
    """Return the difference of two vectors."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def cross(a: Vec3, b: Vec3) -> Vec3:
    """Return the vector product."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def normalize(a: Vec3, otherwise: Vec3) -> Vec3:
    """Return the unit vector along `a`, or `otherwise` where `a` is zero."""
    square = dot(a, a)
    zero = square == 0
    x, y, z = scale(a, 1 / sqrt(where(zero, 1.0, square)))
    u, v, w = otherwise
    return where(zero, u, x), where(zero, v, y), where(zero, w, z)


def transform(matrix: Matrix3, v: Vec3) -> Vec3:
    """Multiply a matrix by a vector."""
    return (dot(matrix[0], v), dot(matrix[1], v), dot(matrix[2], v))


def transpose(matrix: Matrix3) -> Matrix3:
    """Transpose a matrix."""
    a, b, c = matrix
    return ((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2]))


def matrix_rows(matrix: Array) -> Matrix3:
    """Split an (..., 3, 3) array into components, row by row."""
    rows = [(matrix[..., i, 0], matrix[..., i, 1], matrix[..., i, 2]) for i in range(3)]
    return (rows[0], rows[1], rows[2])


def inverse(matrix: Matrix3) -> Matrix3:
    """Invert a matrix by its cofactors, because kernels cannot call LAPACK."""
    a, b, c = matrix
    columns = (cross(b, c), cross(c, a), cross(a, b))
    share = 1 / dot(a, columns[0])
    x, y, z = (scale(column, share) for column in columns)
    return transpose((x, y, z))


def rotation_matrix(quat: Vec4) -> Matrix3:
    """Return the rotation matrix (body to world) of a unit quaternion (xyzw)."""
    x, y, z, w = quat
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )


def quat_rate(quat: Vec4, ang_vel: Vec3) -> Vec4:
    """Return the time derivative of an attitude (xyzw).

    Args:
        quat: Attitude.
        ang_vel: Body rates, rad/s.
    """
    x, y, z, w = quat
    p, q, r = scale(ang_vel, 0.5)
    return (
        w * p + y * r - z * q,
        w * q + z * p - x * r,
        w * r + x * q - y * p,
        -x * p - y * q - z * r,
    )


def drag_force(quat: Vec4, vel: Vec3, drag_matrix: Array) -> Vec3:
    """Return the drag force on a body, linear in its velocity; world frame, N.

    Args:
        quat: Attitude of the body.
        vel: Velocity of the body relative to the air, world frame, m/s.
        drag_matrix: (..., 3, 3) N/(m/s), body frame.
    """
    to_world = rotation_matrix(quat)
    body_vel = transform(transpose(to_world), vel)
    return transform(to_world, transform(matrix_rows(drag_matrix), body_vel))


def rotation_matrix_from_rpy(rpy: Vec3) -> Matrix3:
    """Return the rotation matrix of roll, pitch, yaw [rad] about fixed x, y, z axes (REP 103)."""
    (sr, cr), (sp, cp), (sy, cy) = apart(lambda rpy: [sin_cos(a) for a in rpy], rpy)
    return (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )


def quat_from_rpy(rpy: Vec3) -> Vec4:
    """Return the quaternion (xyzw) of roll, pitch, yaw [rad] about fixed axes (REP 103)."""
    (sr, cr), (sp, cp), (sy, cy) = (sin_cos(angle / 2) for angle in rpy)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def rpy_from_rotation_matrix(matrix: Matrix3) -> Vec3:
    """Return roll, pitch and yaw about the fixed x, y and z axes (REP 103), rad."""
    up = clip(-matrix[2][0], -1, 1)
    level = sqrt(maximum((1 - up) * (1 + up), 1e-30))
    pairs = ((matrix[2][1], matrix[2][2]), (up, level), (matrix[1][0], matrix[0][0]))
    roll, pitch, yaw = apart(lambda pairs: [angle_of(y, x) for y, x in pairs], pairs)
    return (roll, pitch, yaw)


def heading(quat: Vec4) -> Vec3:
    """Return the horizontal unit vector along the body's x axis; east if that axis is vertical.

    The quaternion (xyzw) may have any norm except zero.
    """
    x, y, z, w = quat
    north, east = 2 * (x * y + z * w), w * w + x * x - y * y - z * z
    square = north * north + east * east
    vertical = square == 0
    scaling = rsqrt(where(vertical, 1.0, square))
    return (where(vertical, 1.0, east * scaling), north * scaling, zeros_like(east))


# Terms of the sine and cosine series for rounding accuracy up to pi / 4.
_OCTANT_TERMS = {4: 5, 8: 9}


def sin_cos(angle: Array) -> tuple[Array, Array]:
    """Return sine and cosine of an angle in rad, accurate to rounding for some thousand turns.

    XLA on the CPU calls the C library for each element; these series vectorise.
    """
    if (lib := library(angle)) is not jnp:
        return lib.sin(angle), lib.cos(angle)
    quarter = jnp.round(jax.lax.stop_gradient(angle) * (2 / pi))
    # pi / 2 in parts; the first two have so few digits that their products are exact.
    high, mid, low = _HALF_PI[angle.dtype.itemsize]
    rest = ((angle - quarter * high) - quarter * mid) - quarter * low
    square = rest * rest
    sin, cos = jnp.ones_like(rest), jnp.ones_like(rest)
    for k in range(_OCTANT_TERMS[angle.dtype.itemsize], 0, -1):
        sin = 1 - square * (1 / ((2 * k) * (2 * k + 1))) * sin
        cos = 1 - square * (1 / ((2 * k - 1) * (2 * k))) * cos
    sin = rest * sin
    turns = quarter - 4 * jnp.floor(quarter / 4)  # 0, 1, 2, 3
    swap, sin_sign = (turns == 1) | (turns == 3), jnp.where(turns >= 2, -1.0, 1.0)
    cos_sign = jnp.where((turns == 1) | (turns == 2), -1.0, 1.0)
    return sin_sign * jnp.where(swap, cos, sin), cos_sign * jnp.where(swap, sin, cos)


# Terms of the series of the arctangent for rounding accuracy up to pi / 8.
_EIGHTH_TERMS = {4: 8, 8: 19}


def angle_of(y: Array, x: Array) -> Array:
    """Return the angle of a point from the x axis, -pi to pi, rad; 0 for the origin.

    JAX computes a series that vectorises, as in `sin_cos`.
    """
    return _angle_of(y, x) if library(y) is jnp else arctan2(y, x)


@jax.custom_jvp
def _angle_of(y: Array, x: Array) -> Array:
    ax, ay = jnp.abs(x), jnp.abs(y)
    small, large = jnp.minimum(ax, ay), jnp.maximum(ax, ay)
    # Keep the angle of the series below pi / 8, if necessary by a turn of -pi / 4.
    turned = small > large * tan(pi / 8)
    above = jnp.where(turned, small - large, small)
    below = jnp.where(turned, small + large, large)
    ratio = above / jnp.where(below == 0, 1.0, below)
    square, series = ratio * ratio, jnp.zeros_like(ratio)
    for k in range(_EIGHTH_TERMS[ratio.dtype.itemsize], 0, -1):
        series = square * (1 / (2 * k + 1) - series)
    angle = ratio - ratio * series + jnp.where(turned, pi / 4, 0.0)
    angle = jnp.where(ay > ax, pi / 2 - angle, angle)
    angle = jnp.where(x < 0, pi - angle, angle)
    return jnp.where(y < 0, -angle, angle)


@_angle_of.defjvp
def _angle_of_jvp(point: tuple[Array, Array], tangent: tuple[Array, Array]) -> tuple[Array, Array]:
    (y, x), (dy, dx) = point, tangent
    square = x * x + y * y
    return _angle_of(y, x), (x * dy - y * dx) / jnp.where(square == 0, 1.0, square)


def _parts(value: Decimal, bits: int) -> tuple[float, float, float]:
    """Return three floats that add up to `value`; the first two have `bits` significant bits."""
    parts: list[float] = []
    for _ in range(2):
        mantissa, exponent = frexp(float(value))
        parts.append(ldexp(floor(ldexp(mantissa, bits)), exponent - bits))
        value -= Decimal(parts[-1])
    return parts[0], parts[1], float(value)


_PI = Decimal("3.14159265358979323846264338327950288419716939937510582")
_HALF_PI = {4: _parts(_PI / 2, 11), 8: _parts(_PI / 2, 33)}

# Terms of the sine and cosine series for rounding accuracy of half angles below 2 rad.
_SERIES_TERMS = {4: 9, 8: 14}


def rotate_quat(quat: Vec4, rotvec: Vec3) -> Vec4:
    """Rotate an attitude by a rotation vector in the body frame: q / |q| * exp(rotvec / 2).

    The exponential is a power series in the squared half angle: unlike sin and cos it vectorises,
    and its gradient has no singularity at zero. It is accurate to rounding up to 4 rad, which at a
    step of 2 ms is 2000 rad/s.

    Args:
        quat: Quaternion (xyzw) of any norm except zero.
        rotvec: Rotation vector in the body frame, rad.
    """
    x, y, z, w = quat
    # Normalising the input is cheaper than normalising the result, which would have to be
    # stored.
    scaling = jax.lax.rsqrt(x * x + y * y + z * z + w * w)
    cos, half_sinc = apart(_half_angle, rotvec)
    ex, ey, ez = scale(rotvec, half_sinc)
    return (
        (w * ex + x * cos + y * ez - z * ey) * scaling,
        (w * ey + y * cos + z * ex - x * ez) * scaling,
        (w * ez + z * cos + x * ey - y * ex) * scaling,
        (w * cos - x * ex - y * ey - z * ez) * scaling,
    )


def _half_angle(rotvec: Vec3) -> tuple[Array, Array]:
    """Return cos(a) and sin(a) / (2 a), where a is half the angle of a rotation vector."""
    half2 = dot(rotvec, rotvec) / 4
    cos = sinc = jnp.ones_like(half2)
    for k in range(_SERIES_TERMS[half2.dtype.itemsize], 0, -1):
        cos = 1 - half2 * (1 / ((2 * k - 1) * (2 * k))) * cos
        sinc = 1 - half2 * (1 / ((2 * k) * (2 * k + 1))) * sinc
    return cos, sinc / 2
