"""The rotation from an attitude to a desired one, without singularities."""

from __future__ import annotations

from crazyflow_ros.dynamics.components import Vec3, Vec4, quat_from_rpy, scale
from crazyflow_ros.elementwise import where


def attitude_error(quat: Vec4, rpy: Vec3) -> Vec3:
    """Return twice the vector part of the error quaternion, along the shorter rotation.

    For a rotation by the angle a, this is 2 sin(a / 2) times its axis: for small angles, its
    rotation vector. The length is at most 2.

    Args:
        quat: Present attitude, xyzw.
        rpy: Roll, pitch and yaw of the desired attitude [rad].

    Returns:
        The error in body axes.
    """
    u, v, w, s = quat_from_rpy(rpy)
    x, y, z, q = quat
    # The conjugate of the attitude times the desired attitude.
    error = (
        q * u - x * s - y * w + z * v,
        q * v + x * w - y * s - z * u,
        q * w - x * v + y * u - z * s,
    )
    real = q * s + x * u + y * v + z * w
    return scale(error, where(real < 0, -2.0, 2.0))
