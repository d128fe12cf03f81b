"""Drive a rover and move an arm beside a flying drone, all with stock controllers of one manager.

    ros2 launch crazyflow_ros demo_3_rover.launch.py

The arguments are those of `robots.launch.py`.
"""

from __future__ import annotations

from launch import LaunchDescription

from crazyflow_ros.ros.launch_demos import demo, publish, send_to

POSTURE = (0.8, 0.5, -0.7)  # rad


def generate_launch_description() -> LaunchDescription:
    """Let the drone hover, the rover drive in a circle and the arm take a posture."""
    joints = [f"arm_joint{i}" for i in (1, 2, 3)]
    point = {"positions": list(POSTURE), "time_from_start": {"sec": 2}}
    drive = {"twist": {"linear": {"x": 0.3}, "angular": {"z": 0.4}}}
    commands = [
        send_to("cf0", (0.3, 0.2, 1.0)),
        publish(
            "/rover_drive/cmd_vel", "geometry_msgs/msg/TwistStamped", drive, times=0, rate=10.0
        ),
        publish(
            "/arm_trajectory/joint_trajectory",
            "trajectory_msgs/msg/JointTrajectory",
            {"joint_names": joints, "points": [point]},
        ),
    ]
    return demo(__file__, "robots", {"controller": "position"}, commands)
