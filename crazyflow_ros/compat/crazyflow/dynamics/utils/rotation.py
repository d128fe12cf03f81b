"""Conversions between body rates and rates of roll, pitch and yaw, also for CasADi.

Quaternions are xyzw, body to world; attitudes are roll, pitch, yaw [rad]. Rates of roll and yaw are
not defined at a pitch of 90 degrees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

from crazyflow_ros.dynamics.components import (
    Vec3,
    quat_rate,
    rotation_matrix,
    rotation_matrix_from_rpy,
    rpy_from_rotation_matrix,
    sin_cos,
    split,
    stack,
    subtract,
)
from crazyflow_ros.extras import extra

with extra("casadi"):
    import casadi as cs

__all__ = [
    "ang_vel2quat_dot",
    "ang_vel2rpy_rates",
    "ang_vel_deriv2rpy_rates_deriv",
    "create_cs_ang_vel2rpy_rates",
    "create_cs_ang_vel_deriv2rpy_rates_deriv",
    "create_cs_quat2matrix",
    "create_cs_rpy2matrix",
    "create_cs_rpy_rates2ang_vel",
    "create_cs_rpy_rates_deriv2ang_vel_deriv",
    "cs_ang_vel2rpy_rates",
    "cs_ang_vel_deriv2rpy_rates_deriv",
    "cs_quat2euler",
    "cs_quat2matrix",
    "cs_quat2matrix_func",
    "cs_rpy2matrix",
    "cs_rpy2matrix_func",
    "cs_rpy_rates2ang_vel",
    "cs_rpy_rates_deriv2ang_vel_deriv",
    "rpy_rates2ang_vel",
    "rpy_rates_deriv2ang_vel_deriv",
]


def _to_rates(rpy: Vec3, ang_vel: Vec3) -> Vec3:
    (sr, cr), (sp, cp) = sin_cos(rpy[0]), sin_cos(rpy[1])
    p, q, r = ang_vel
    yaw = (sr * q + cr * r) / cp
    return p + sp * yaw, cr * q - sr * r, yaw


def _to_ang_vel(rpy: Vec3, rates: Vec3) -> Vec3:
    (sr, cr), (sp, cp) = sin_cos(rpy[0]), sin_cos(rpy[1])
    roll, pitch, yaw = rates
    return roll - sp * yaw, cr * pitch + sr * cp * yaw, cr * cp * yaw - sr * pitch


def _turning(rpy: Vec3, rates: Vec3) -> Vec3:
    """Return the derivative of the body rates while those of roll, pitch and yaw are constant."""
    (sr, cr), (sp, cp) = sin_cos(rpy[0]), sin_cos(rpy[1])
    roll, pitch, yaw = rates
    along, across = cp * roll * yaw, sp * pitch * yaw
    return (
        -cp * pitch * yaw,
        cr * along - sr * (roll * pitch + across),
        -sr * along - cr * (roll * pitch + across),
    )


def _to_rates_deriv(rpy: Vec3, ang_vel: Vec3, ang_acc: Vec3) -> Vec3:
    rest = subtract(ang_acc, _turning(rpy, _to_rates(rpy, ang_vel)))
    return _to_rates(rpy, rest)


def _to_ang_acc(rpy: Vec3, rates: Vec3, rates_deriv: Vec3) -> Vec3:
    x, y, z = _to_ang_vel(rpy, rates_deriv)
    a, b, c = _turning(rpy, rates)
    return x + a, y + b, z + c


def _with_arrays(function: Callable[..., Vec3], quat: Any, *vectors: Any) -> Any:
    rpy = rpy_from_rotation_matrix(rotation_matrix(split(quat)))  # type: ignore[arg-type]
    return stack(function(rpy, *map(split, vectors)))


def ang_vel2quat_dot(quat: Any, ang_vel: Any) -> Any:
    """Return the derivative of quaternions (..., 4) for body rates (..., 3) [rad/s]."""
    return stack(quat_rate(split(quat), split(ang_vel)))  # type: ignore[arg-type]


def ang_vel2rpy_rates(quat: Any, ang_vel: Any) -> Any:
    """Return the rates of roll, pitch and yaw (..., 3) for body rates."""
    return _with_arrays(_to_rates, quat, ang_vel)


def rpy_rates2ang_vel(quat: Any, rpy_rates: Any) -> Any:
    """Return the body rates (..., 3) for rates of roll, pitch and yaw."""
    return _with_arrays(_to_ang_vel, quat, rpy_rates)


def ang_vel_deriv2rpy_rates_deriv(quat: Any, ang_vel: Any, ang_vel_deriv: Any) -> Any:
    """Return the second derivatives of roll, pitch and yaw for the derivative of body rates."""
    return _with_arrays(_to_rates_deriv, quat, ang_vel, ang_vel_deriv)


def rpy_rates_deriv2ang_vel_deriv(quat: Any, rpy_rates: Any, rpy_rates_deriv: Any) -> Any:
    """Return the derivative of body rates for second derivatives of roll, pitch and yaw."""
    return _with_arrays(_to_ang_acc, quat, rpy_rates, rpy_rates_deriv)


# Expressions of CasADi.


def _matrix(rows: Any) -> Any:
    return cs.vertcat(*(cs.horzcat(*row) for row in rows))


def cs_quat2matrix(quat: Any) -> Any:
    """Return the rotation matrix (3, 3) of a quaternion, which is normalised."""
    return _matrix(rotation_matrix(cs.vertsplit(quat / cs.norm_2(quat))))  # type: ignore[arg-type]


def cs_rpy2matrix(rpy: Any, degrees: bool = False) -> Any:
    """Return the rotation matrix (3, 3) of roll, pitch and yaw."""
    rpy = rpy * (pi / 180 if degrees else 1.0)
    return _matrix(rotation_matrix_from_rpy(tuple(cs.vertsplit(rpy))))


def cs_quat2euler(quat: Any, seq: str = "xyz", degrees: bool = False) -> Any:
    """Return the angles (3,) of a quaternion about three axes, as SciPy's `as_euler` does.

    E. Bernardes, S. Viollet, "Quaternion to Euler angles conversion", PLOS ONE 2022.

    Args:
        quat: Expression (4,).
        seq: Axes, small letters for those of the world, capital ones for those of the body.
        degrees: Whether the angles are in degrees instead of rad.

    Raises:
        ValueError: `seq` does not consist of three axes of one kind, neighbours being different.
    """
    known = len(seq) == 3 and (set(seq) <= set("xyz") or set(seq) <= set("XYZ"))
    if not known or seq[0] == seq[1] or seq[1] == seq[2]:
        raise ValueError(f"Expected three axes of xyz or of XYZ, consecutive ones different: {seq}")
    of_world = seq.islower()
    i, j, k = ("xyz".index(axis) for axis in (seq if of_world else seq[::-1].lower()))
    first, third = (0, 2) if of_world else (2, 0)
    if symmetric := i == k:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    w, u, v, x = quat[3], quat[i], quat[j], sign * quat[k]
    a, b, c, d = (w, u, v, x) if symmetric else (w - v, u + x, v + w, x - u)
    middle = 2 * cs.atan2(cs.sqrt(c * c + d * d), cs.sqrt(a * a + b * b))
    half_sum, half_difference = cs.atan2(b, a), cs.atan2(d, c)
    at_0, at_pi = cs.fabs(middle) <= 1e-7, cs.fabs(middle - pi) <= 1e-7
    lone = cs.if_else(at_0, 2 * half_sum, (-2 if of_world else 2) * half_difference)
    at_pole = cs.logic_or(at_0, at_pi)
    angles: list[Any] = [None, middle, None]
    angles[first] = half_sum - half_difference
    angles[third] = half_sum + half_difference
    angles[0] = cs.if_else(at_pole, lone, angles[0])
    angles[2] = cs.if_else(at_pole, 0.0, angles[2])
    if not symmetric:
        angles[third] = sign * angles[third]
        angles[1] = middle - pi / 2
    turned = [x + cs.if_else(x < -pi, 2 * pi, cs.if_else(x > pi, -2 * pi, 0.0)) for x in angles]
    return cs.vertcat(*turned) * (180 / pi if degrees else 1.0)


def _function(name: str, rates: Callable[..., Any], n_vectors: int) -> Any:
    quat, *vectors = (cs.MX.sym(f"x{i}", 3 if i else 4) for i in range(n_vectors + 1))
    rpy = rpy_from_rotation_matrix(rotation_matrix(tuple(cs.vertsplit(quat))))  # type: ignore[arg-type]
    result = cs.vertcat(*rates(rpy, *(tuple(cs.vertsplit(v)) for v in vectors)))
    return cs.Function(name, [quat, *vectors], [result])


def _matrix_function(name: str, matrix: Callable[[Any], Any], size: int) -> Any:
    x = cs.MX.sym("x", size)
    return cs.Function(name, [x], [matrix(x)])


# Makers of functions of quaternion and vectors, as above, and what they make.
create_cs_ang_vel2rpy_rates = partial(_function, "cs_ang_vel2rpy_rates", _to_rates, 1)
create_cs_rpy_rates2ang_vel = partial(_function, "cs_rpy_rates2ang_vel", _to_ang_vel, 1)
create_cs_ang_vel_deriv2rpy_rates_deriv = partial(
    _function, "cs_ang_vel_deriv2rpy_rates_deriv", _to_rates_deriv, 2
)
create_cs_rpy_rates_deriv2ang_vel_deriv = partial(
    _function, "cs_rpy_rates_deriv2ang_vel_deriv", _to_ang_acc, 2
)
create_cs_quat2matrix = partial(_matrix_function, "cs_quat2matrix", cs_quat2matrix, 4)
create_cs_rpy2matrix = partial(_matrix_function, "cs_rpy2matrix", cs_rpy2matrix, 3)
cs_ang_vel2rpy_rates = create_cs_ang_vel2rpy_rates()
cs_rpy_rates2ang_vel = create_cs_rpy_rates2ang_vel()
cs_ang_vel_deriv2rpy_rates_deriv = create_cs_ang_vel_deriv2rpy_rates_deriv()
cs_rpy_rates_deriv2ang_vel_deriv = create_cs_rpy_rates_deriv2ang_vel_deriv()
cs_quat2matrix_func = create_cs_quat2matrix()
cs_rpy2matrix_func = create_cs_rpy2matrix()
