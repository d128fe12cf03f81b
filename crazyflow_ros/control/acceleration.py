"""Acceleration commands, converted to thrust and attitude, for single-axis controllers.

A quadrotor's acceleration and heading determine its thrust and attitude (D. Mellinger, V. Kumar,
"Minimum snap trajectory generation and control for quadrotors", ICRA 2011, section III).
"""

from __future__ import annotations

import numpy as np

GRAVITY = 9.81  # m/s^2
_LEAST_LIFT = 0.1  # of the weight; with less upward thrust a drone would turn over


def attitude_command(acc: np.ndarray, yaw: np.ndarray, quat: np.ndarray, mass: float) -> np.ndarray:
    """Compute thrust and attitude for an acceleration; zero acceleration hovers.

    Args:
        acc: Desired acceleration in the world [m/s^2], shape (M, 3). Downward acceleration is
            limited to nine tenths of free fall.
        yaw: Desired heading [rad], shape (M,).
        quat: Present attitude xyzw, shape (M, 4); the thrust acts along its z axis.
        mass: Mass of a drone [kg].

    Returns:
        Collective thrust [N], roll, pitch and yaw [rad] of each drone, shape (M, 4).
    """
    lift = np.maximum(acc[:, 2] + GRAVITY, _LEAST_LIFT * GRAVITY)
    east, north = acc[:, 0], acc[:, 1]
    x, y, z, w = quat.T
    body_z = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    thrust = mass * (east * body_z[0] + north * body_z[1] + lift * body_z[2])
    # In axes ahead, left and up, the z axis is (sin p cos r, -sin r, cos p cos r).
    ahead = np.cos(yaw) * east + np.sin(yaw) * north
    left = np.cos(yaw) * north - np.sin(yaw) * east
    pitch = np.arctan2(ahead, lift)
    roll = -np.arctan2(left, np.hypot(ahead, lift))
    return np.stack((np.maximum(thrust, 0.0), roll, pitch, yaw), axis=1)
