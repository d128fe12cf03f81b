"""Start a world with a rover and an arm, drones, and the controllers of all of them, in lock-step.

    ros2 launch crazyflow_ros robots.launch.py
    ros2 launch crazyflow_ros robots.launch.py n_drones:=2 controller:=position managers:=each

It is `ros2_control.launch.py`, whose arguments are taken, with the scene `urdf_mjcf/robots.xml`,
the robots of `urdf_mjcf/robots.urdf` and the controllers of `config/robots.yaml`.
"""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments that differ; `ros2_control.launch.py` does the rest."""
    return described(
        __file__,
        [
            DeclareLaunchArgument(
                "scene", default_value="robots", description="World with the robots"
            ),
            DeclareLaunchArgument(
                "robots",
                default_value="robots",
                description="URDF file of the robots, or name of one in urdf_mjcf",
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(resource("launch", "ros2_control.launch.py")))
            ),
        ],
    )
