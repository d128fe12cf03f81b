"""Points, vectors and attitudes as messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3


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


def pose(pos: Sequence[float] | np.ndarray, quat: Sequence[float] | np.ndarray) -> Pose:
    """Return a position and an attitude x, y, z, w as a Pose."""
    return Pose(position=point(pos), orientation=quaternion(quat))
