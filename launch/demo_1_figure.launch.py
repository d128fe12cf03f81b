"""Fly a figure eight with the stock joint_trajectory_controller.

    ros2 launch crazyflow_ros demo_1_figure.launch.py

The arguments are those of `ros2_control.launch.py`.
"""

from __future__ import annotations

from math import pi, sin

from launch import LaunchDescription

from crazyflow_ros.ros.launch_demos import demo, publish, trajectory

TURN = 16.0  # s
JOINTS = ("cf0_x", "cf0_y", "cf0_z")


def figure_eight(t: float) -> tuple[float, float, float]:
    """Return the place [m] at a time [s]."""
    angle = 2 * pi * t / TURN
    return 0.8 * sin(angle), 0.4 * sin(2 * angle), 1.0


def generate_launch_description() -> LaunchDescription:
    """Fly it twice, after three seconds for the take-off."""
    message = trajectory(JOINTS, figure_eight, duration=2 * TURN, start=3.0)
    topic = "/cf0_trajectory/joint_trajectory"
    commands = [publish(topic, "trajectory_msgs/msg/JointTrajectory", message)]
    return demo(__file__, "ros2_control", {"controller": "trajectory"}, commands)
