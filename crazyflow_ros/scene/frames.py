"""Quaternion order and frames: the only place where they are converted.

The world is ENU (x east, y north, z up), bodies are FLU (x forward, y left, z up), as in REP 103.
A quaternion is the active rotation from world to body, so that it converts body coordinates to
world coordinates. It is scalar-last (xyzw) in this package and in ROS, scalar-first (wxyz) in
MuJoCo. Every function accepts NumPy or JAX arrays with any leading axes, and returns the same kind;
quaternions must be normalised. Autopilots have their world in NED (x north, y east, z down) and
their bodies in FRD (x forward, y right, z down).
"""

from __future__ import annotations

import math
from typing import TypeAlias, TypeVar

import jax
import numpy as np

__all__ = [
    "body_to_world",
    "camera_link",
    "enu_to_ned",
    "flu_to_frd",
    "frd_in_ned",
    "heading_to_world",
    "mujoco_camera",
    "multiply",
    "quat_from_matrix",
    "quat_from_rotvec",
    "quat_from_rpy",
    "rotation_matrix",
    "rpy",
    "world_to_body",
    "wxyz_to_xyzw",
    "xyzw_to_wxyz",
    "yaw",
]

Array: TypeAlias = np.ndarray | jax.Array
A = TypeVar("A", np.ndarray, jax.Array)

OPTICAL_IN_LINK = np.array([-0.5, 0.5, -0.5, 0.5])
"""Attitude (xyzw) of a camera's optical frame (z forward, x right, y down) in its FLU link."""

_LINK_IN_MUJOCO_CAMERA = np.array([0.5, -0.5, -0.5, -0.5])
"""Attitude (xyzw) of the FLU link of a camera in MuJoCo's camera frame (-z forward, y up)."""


_SIGNS_OF_FRD = np.array([1.0, -1.0, -1.0])
_ENU_IN_NED = np.array([0.5**0.5, 0.5**0.5, 0.0, 0.0])
_FRD_IN_FLU = np.array([-1.0, 0.0, 0.0, 0.0])  # so that w is positive to the north and east


def xyzw_to_wxyz(quat: A) -> A:
    """Reorder quaternions (..., 4) of this package and ROS for MuJoCo."""
    xp = quat.__array_namespace__()
    return xp.concat([quat[..., 3:], quat[..., :3]], axis=-1)


def wxyz_to_xyzw(quat: A) -> A:
    """Reorder quaternions (..., 4) of MuJoCo for this package and ROS."""
    xp = quat.__array_namespace__()
    return xp.concat([quat[..., 1:], quat[..., :1]], axis=-1)


def enu_to_ned(vector: A) -> A:
    """Convert vectors (..., 3) of the world to axes north, east, down."""
    x, y, z = (vector[..., i] for i in range(3))
    return vector.__array_namespace__().stack([y, x, -z], axis=-1)


def flu_to_frd(vector: A) -> A:
    """Convert vectors (..., 3) of a body to axes forward, right, down."""
    return vector * vector.__array_namespace__().asarray(_SIGNS_OF_FRD)


def frd_in_ned(quat: A) -> A:
    """Convert attitudes xyzw (..., 4) to those of a body in FRD axes in a world in NED axes."""
    xp = quat.__array_namespace__()
    return multiply(multiply(xp.asarray(_ENU_IN_NED), quat), xp.asarray(_FRD_IN_FLU))


def multiply(first: A, second: A) -> A:
    """Return the Hamilton product (..., 4) of quaternions xyzw: `second`, given in `first`."""
    xp = first.__array_namespace__()
    x, y, z, w = _components(first)
    a, b, c, d = _components(second)
    return xp.stack(
        [
            w * a + x * d + y * c - z * b,
            w * b - x * c + y * d + z * a,
            w * c + x * b - y * a + z * d,
            w * d - x * a - y * b - z * c,
        ],
        axis=-1,
    )


def rotation_matrix(quat: A) -> A:
    """Return the rotation matrices (..., 3, 3) of quaternions xyzw (..., 4).

    They convert body to world coordinates: their columns are the body's axes in the world.
    """
    if isinstance(quat, np.ndarray):  # the same numbers, for a few drones in half the time
        x, y, z, w = np.moveaxis(quat, -1, 0)
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        wx, wy, wz = w * x, w * y, w * z
        matrix = np.empty((*quat.shape[:-1], 9), quat.dtype)
        matrix[..., 0], matrix[..., 1], matrix[..., 2] = yy + zz, xy - wz, xz + wy
        matrix[..., 3], matrix[..., 4], matrix[..., 5] = xy + wz, xx + zz, yz - wx
        matrix[..., 6], matrix[..., 7], matrix[..., 8] = xz - wy, yz + wx, xx + yy
        matrix *= 2
        diagonal = matrix[..., ::4]
        np.subtract(1, diagonal, out=diagonal)
        return matrix.reshape(*quat.shape[:-1], 3, 3)
    xp = quat.__array_namespace__()
    x, y, z, w = _components(quat)
    elements = [
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    ]
    return xp.stack(elements, axis=-1).reshape(*quat.shape[:-1], 3, 3)


def quat_from_matrix(matrix: A) -> A:
    """Return the quaternions xyzw (..., 4), w >= 0, of rotation matrices (..., 3, 3)."""
    xp = matrix.__array_namespace__()
    x, y, z = matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 2, 2]
    a, b, c = (matrix[..., i, j] - matrix[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    d, e, f = (matrix[..., i, j] + matrix[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    # Rows: four times the quaternion times x, y, z or w. The longest row is the most accurate.
    rows = xp.stack(
        [1 + x - y - z, d, e, a, d, 1 - x + y - z, f, b, e, f, 1 - x - y + z, c, a, b, c,
         1 + x + y + z],
        axis=-1,
    ).reshape(*matrix.shape[:-2], 4, 4)  # fmt: skip
    longest = xp.argmax(xp.stack([rows[..., i, i] for i in range(4)], axis=-1), axis=-1)
    quat = xp.take_along_axis(rows, longest[..., None, None], axis=-2)[..., 0, :]
    quat = quat / xp.linalg.norm(quat, axis=-1, keepdims=True)
    return xp.where(quat[..., 3:] < 0.0, -quat, quat)


def quat_from_rotvec(turn: A) -> A:
    """Return the attitude (xyzw) after a turn about an axis of its length [rad], (..., 3)."""
    xp = turn.__array_namespace__()
    angle = xp.linalg.vector_norm(turn, axis=-1, keepdims=True)
    return xp.concat([turn / 2 * xp.sinc(angle / math.tau), xp.cos(angle / 2)], axis=-1)


def body_to_world(quat: A, vector: A) -> A:
    """Convert vectors (..., 3) from body to world axes; `quat` (..., 4) is the attitude xyzw."""
    x, y, z, w = _components(quat)
    return _rotate(x, y, z, w, vector)


def world_to_body(quat: A, vector: A) -> A:
    """Convert vectors (..., 3) from world to body axes; `quat` (..., 4) is the attitude xyzw."""
    x, y, z, w = _components(quat)
    return _rotate(x, y, z, -w, vector)


def heading_to_world(yaw: A, vector: A) -> A:
    """Convert vectors (..., 3) from the heading frame to world axes.

    The heading frame is level, and rotated by `yaw` (...) [rad] about the world's z axis.
    """
    xp = vector.__array_namespace__()
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    cos, sin = xp.cos(yaw), xp.sin(yaw)
    return xp.stack([cos * x - sin * y, sin * x + cos * y, z], axis=-1)


def yaw(quat: A) -> A:
    """Return the heading (...) [rad] in (-pi, pi] of quaternions xyzw (..., 4), as in `rpy`."""
    xp = quat.__array_namespace__()
    x, y, z, w = _components(quat)
    return xp.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def rpy(quat: A) -> A:
    """Return roll, pitch, yaw (..., 3) [rad] of quaternions xyzw (..., 4).

    Rotations about the fixed axes x, y, z in this order (REP 103). Positive pitch is nose down.
    """
    xp = quat.__array_namespace__()
    x, y, z, w = _components(quat)
    roll = xp.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = xp.asin(xp.clip(2 * (w * y - x * z), -1.0, 1.0))
    return xp.stack([roll, pitch, yaw(quat)], axis=-1)


def quat_from_rpy(angles: A) -> A:
    """Return quaternions xyzw (..., 4) of roll, pitch, yaw (..., 3) [rad], see `rpy`."""
    xp = angles.__array_namespace__()
    cos, sin = xp.cos(angles / 2), xp.sin(angles / 2)
    cr, cp, cy = cos[..., 0], cos[..., 1], cos[..., 2]
    sr, sp, sy = sin[..., 0], sin[..., 1], sin[..., 2]
    return xp.stack(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ],
        axis=-1,
    )


def camera_link(quat: np.ndarray) -> np.ndarray:
    """Return the attitude xyzw (..., 4) of a camera's FLU link, given that of the MuJoCo camera.

    A MuJoCo camera looks along its -z axis with +y up, its link along +x with +z up.
    """
    return multiply(quat, _LINK_IN_MUJOCO_CAMERA)


def mujoco_camera(quat: np.ndarray) -> np.ndarray:
    """Return the attitude xyzw (..., 4) of a MuJoCo camera, given that of its FLU link."""
    return multiply(quat, _LINK_IN_MUJOCO_CAMERA * [-1.0, -1.0, -1.0, 1.0])


def _components(quat: A) -> tuple[A, A, A, A]:
    return quat[..., 0], quat[..., 1], quat[..., 2], quat[..., 3]


def _rotate(x: A, y: A, z: A, w: A, vector: A) -> A:
    """Rotate by the quaternion (u, w): v + 2 w (u x v) + 2 u x (u x v)."""
    xp = vector.__array_namespace__()
    a, b, c = vector[..., 0], vector[..., 1], vector[..., 2]
    p, q, r = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return xp.stack(
        [a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p], axis=-1
    )


def grid_2d(n: int) -> np.ndarray:
    """Return n points of a 1 m grid around the origin, (n, 2), nearest to the centre first."""
    side = next(k for k in range(1, n + 1) if k * k >= n)
    axis = np.arange(side) - (side - 1) / 2
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return points[np.argsort(np.linalg.norm(points, axis=-1), kind="stable")[:n]]
