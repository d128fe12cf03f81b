"""Names of coordinate frames in messages (REP 105), the same in every ROS namespace."""

from __future__ import annotations

MAP = "map"
"""The world: x east, y north, z up."""


def odom(drone: str) -> str:
    """Return the odometry frame of a drone, which equals `MAP` as the odometry has no drift."""
    return f"{drone}/odom"


def base_link(drone: str) -> str:
    """Return the body frame of a drone: origin in the centre of mass, x forward, y left, z up."""
    return f"{drone}/base_link"


def imu_link(drone: str) -> str:
    """Return the frame of a drone's IMU."""
    return f"{drone}/imu_link"


def range_link(drone: str) -> str:
    """Return the frame of a drone's range sensor, which measures along x, downwards."""
    return f"{drone}/range_link"


def fpv_camera_optical_frame(drone: str) -> str:
    """Return the optical frame of the camera in a drone's nose: x right, y down, z forward."""
    return f"{drone}/fpv_camera_optical_frame"
