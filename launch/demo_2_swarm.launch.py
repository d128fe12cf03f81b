"""Fly four drones, each with a controller manager of its own.

    ros2 launch crazyflow_ros demo_2_swarm.launch.py

The arguments are those of `ros2_control.launch.py`.
"""

from __future__ import annotations

from launch import Action, LaunchDescription

from crazyflow_ros.ros.launch_demos import demo, later, send_to

N = 4


def generate_launch_description() -> LaunchDescription:
    """Let them rise side by side, and form a square 8 s later."""

    def send(i: int, *place: float) -> Action:
        return send_to(f"cf{i}", place, f"cf{i}/position")

    line = [send(i, float(i), 0.0, 1.0) for i in range(N)]
    square = [send(i, 1.0 + i // 2, float(i % 2), 1.5) for i in range(N)]
    arguments = {"n_drones": str(N), "managers": "each", "controller": "position"}
    return demo(__file__, "ros2_control", arguments, [*line, later(8.0, *square)], N)
