"""Points, vectors and attitudes as messages and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, sin
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3

from crazyflow_ros.checks import limits


def xyz(message: Any) -> np.ndarray:
    """Return a Point or a Vector3 as an array (3,)."""
    return np.array([message.x, message.y, message.z])


def xyzw(message: Quaternion) -> np.ndarray:
    """Return a Quaternion as an array x, y, z, w."""
    return np.array([message.x, message.y, message.z, message.w])


def attitude(message: Quaternion) -> np.ndarray:
    """Return a Quaternion as a unit quaternion x, y, z, w.

    Raises:
        ValueError: It is zero, or a number is NaN, infinite or too large.
    """
    numbers = [message.x, message.y, message.z, message.w]
    return limits.unit_quaternion("orientation", numbers)


def point(numbers: Sequence[float] | np.ndarray) -> Point:
    """Return x, y, z as a Point."""
    x, y, z = np.asarray(numbers, float).tolist()
    return Point(x=x, y=y, z=z)


def vector(numbers: Sequence[float] | np.ndarray) -> Vector3:
    """Return x, y, z as a Vector3."""
    x, y, z = np.asarray(numbers, float).tolist()
    return Vector3(x=x, y=y, z=z)


def quaternion(numbers: Sequence[float] | np.ndarray) -> Quaternion:
    """Return an attitude x, y, z, w as a Quaternion."""
    x, y, z, w = np.asarray(numbers, float).tolist()
    return Quaternion(x=x, y=y, z=z, w=w)


def heading(yaw: float) -> Quaternion:
    """Return the level attitude with a heading [rad]."""
    return Quaternion(z=sin(yaw / 2), w=cos(yaw / 2))


def pose(pos: Sequence[float] | np.ndarray, quat: Sequence[float] | np.ndarray) -> Pose:
    """Return a position and an attitude x, y, z, w as a Pose."""
    return Pose(position=point(pos), orientation=quaternion(quat))
