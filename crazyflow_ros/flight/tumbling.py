"""How far a drone is tilted, and how it stands once somebody has set it upright."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.scene.frames import quat_from_rpy, rotation_matrix, yaw

TUMBLED = 0.5
"""Cosine of the tilt [-] below which a drone lies on its side or upside down: 60 degrees, as for
the firmware, which compares the vertical reading of a resting accelerometer with half of g."""
TOUCHES = 0.05
"""Least force of a contact along an axis, as a share of the weight."""
SLOW = 0.05
"""Speed along an axis [m/s] below which a drone rests."""
_TURNS = 0.5  # rad/s


def uprightness(quat: np.ndarray) -> np.ndarray:
    """Return the cosine of the tilt, 1 for a level drone.

    Args:
        quat: (..., 4) attitude xyzw.
    """
    cosine: np.ndarray = 1 - 2 * (quat[..., 0] ** 2 + quat[..., 1] ** 2)
    return cosine


def leaning_height(points: np.ndarray) -> float:
    """Return how much higher the centre of mass of a drone is that lies tilted by 60 degrees [m].

    Args:
        points: See `contact_points`.
    """
    sine = np.sqrt(1 - TUMBLED**2)
    below = np.hypot(points[:, 0], points[:, 1]) * sine - points[:, 2] * TUMBLED
    return float(below.max() + points[:, 2].min())


def upright_pose(
    pos: np.ndarray, quat: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose of a drone after it was turned upright on the spot where it lies.

    It keeps its heading, and stands on what it lay on.

    Args:
        pos: (3,) its centre of mass [m], world frame.
        quat: (4,) its attitude xyzw.
        points: (n, 3) the points on which it stands or lies [m], body frame.

    Returns:
        Position (3,) and attitude xyzw (4,).
    """
    upright = quat_from_rpy(np.array([0.0, 0.0, float(yaw(quat))]))
    below, above = (float((points @ rotation_matrix(q).T)[:, 2].min()) for q in (quat, upright))
    return pos + np.array([0.0, 0.0, below - above]), upright


def lies(contact: np.ndarray, vel: np.ndarray, ang_vel: np.ndarray, weight: float) -> bool:
    """Return whether a drone rests on something.

    Args:
        contact: (3,) force of all contacts [N].
        vel: (3,) its velocity [m/s].
        ang_vel: (3,) its angular velocity [rad/s].
        weight: Its weight [N].
    """
    is_held = float(np.abs(contact).max()) > TOUCHES * weight
    return is_held and float(np.abs(vel).max()) < SLOW and float(np.abs(ang_vel).max()) < _TURNS
