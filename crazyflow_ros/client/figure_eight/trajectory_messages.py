"""Conversion of the flight client's ROS messages from and to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Transform, Twist
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from crazyflow_ros.client.figure_eight.flight_path import FlightPath
from crazyflow_ros.ros.messages import (
    NS,
    XYZ,
    below,
    duration_of,
    find_numbers,
    heading,
    nanoseconds,
    time_of,
    vector,
    xyz,
)

POINTS_PER_SECOND = 10  # of a trajectory; the simulator interpolates with polynomials


def trajectory_message(drone: str, flight: FlightPath, start_ns: int) -> MultiDOFJointTrajectory:
    """Convert a flight that starts at a simulated time in ns to a message in the map frame."""
    times = np.linspace(0, flight.duration, int(np.ceil(flight.duration * POINTS_PER_SECOND)) + 1)
    points = []
    for seconds, pos, vel, acc in zip(times.tolist(), *flight(times)):
        point = point_message(seconds, pos)
        point.velocities.append(Twist(linear=vector(vel)))
        point.accelerations.append(Twist(linear=vector(acc)))
        points.append(point)
    return message_of_points(drone, start_ns, points)


def point_message(seconds: float, pos: np.ndarray, yaw: float = 0.0) -> Any:
    """Return a point of a trajectory, of time in s, position (3,) in m and heading in rad."""
    place = Transform(translation=vector(pos), rotation=heading(yaw))
    return MultiDOFJointTrajectoryPoint(transforms=[place], time_from_start=duration_of(seconds))


def message_of_points(drone: str, start_ns: int, points: list[Any]) -> MultiDOFJointTrajectory:
    """Return a trajectory in the map frame that starts at a simulated time in ns."""
    message = MultiDOFJointTrajectory(joint_names=[f"{drone}/base_link"], points=points)
    message.header.frame_id, message.header.stamp = "map", time_of(start_ns)
    return message


def read_pose(message: bytes) -> tuple[int, np.ndarray]:
    """Return time in ns and position (3,) in m of a serialised PoseStamped."""
    pose = deserialize_message(message, PoseStamped)
    return nanoseconds(pose.header.stamp), xyz(pose.pose.position)


def read_poses(messages: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return times in ns (K,) and positions (K, 3) in m of K >= 1 serialised PoseStamped.

    All have the same frame, hence the same layout: reading them together takes less than a
    hundredth of the time.
    """
    prototype = deserialize_message(messages[0], PoseStamped)
    stamp = below("header.stamp", ("sec", "nanosec"))
    *places, sec, nanosec = find_numbers(prototype, below("pose.position", XYZ), stamp)
    rows = np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)

    def column(offset: int, kind: type[np.generic]) -> np.ndarray:
        size = np.dtype(kind).itemsize
        return rows[:, offset : offset + size].copy().view(kind)[:, 0]

    times_ns = column(sec, np.int32).astype(np.int64) * NS + column(nanosec, np.uint32)
    return times_ns, np.stack([column(place, np.float64) for place in places], axis=1)
