"""Acceleration commands, converted to thrust and attitude, for single-axis controllers.

A quadrotor's acceleration and heading determine its thrust and attitude (D. Mellinger, V. Kumar,
"Minimum snap trajectory generation and control for quadrotors", ICRA 2011, section III).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

GRAVITY = 9.81  # m/s^2
_LEAST_LIFT = 0.1  # of the weight; with less upward thrust a drone would turn over


def attitude_command(
    acc: Sequence[float],
    yaw: float,
    quat: Sequence[float],
    mass: float,
    gravity: float = GRAVITY,
) -> tuple[float, float, float, float]:
    """Compute thrust and attitude of a drone for an acceleration; zero acceleration hovers.

    It uses plain numbers, which for a few drones are several times faster than arrays.

    Args:
        acc: Desired acceleration in the world [m/s^2], three numbers. Downward acceleration is
            limited to nine tenths of free fall.
        yaw: Desired heading [rad].
        quat: Present attitude xyzw; the thrust acts along its z axis.
        mass: Mass of the drone [kg].
        gravity: Gravity [m/s^2], downwards.

    Returns:
        Collective thrust [N], roll, pitch and yaw [rad].
    """
    east, north, up = acc
    lift = max(up + gravity, _LEAST_LIFT * gravity)
    x, y, z, w = quat
    body_z = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    thrust = mass * (east * body_z[0] + north * body_z[1] + lift * body_z[2])
    # In axes ahead, left and up, the z axis is (sin p cos r, -sin r, cos p cos r).
    ahead = math.cos(yaw) * east + math.sin(yaw) * north
    left = math.cos(yaw) * north - math.sin(yaw) * east
    pitch = math.atan2(ahead, lift)
    roll = -math.atan2(left, math.hypot(ahead, lift))
    return max(thrust, 0.0), roll, pitch, yaw
