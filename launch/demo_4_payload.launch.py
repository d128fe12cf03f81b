"""Lift a bar that hangs on cables between two drones, with stock controllers.

    ros2 launch crazyflow_ros demo_4_payload.launch.py

The arguments are those of `ros2_control.launch.py`.
"""

from __future__ import annotations

from launch import LaunchDescription

from crazyflow_ros.ros.launch_demos import demo, later, send_to


def generate_launch_description() -> LaunchDescription:
    """Lift the bar, and carry it half a metre aside 8 s later."""
    arguments = {"scene": "carried_bar", "n_drones": "2", "controller": "position"}
    lift = [send_to(f"cf{i}", (float(i), 0.0, 1.0)) for i in (0, 1)]
    carry = [send_to(f"cf{i}", (float(i), 0.5, 1.2)) for i in (0, 1)]
    return demo(__file__, "ros2_control", arguments, [*lift, later(8.0, *carry)])
