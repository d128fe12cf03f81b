"""Start the simulator and fly one of its drones with a gamepad.

    ros2 launch crazyflow_ros teleop.launch.py drone:=cf0

For a keyboard, use a separate terminal:

    ros2 run teleop_twist_keyboard teleop_twist_keyboard --ros-args -r cmd_vel:=/cf0/cmd_vel
"""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

# Parameters of teleop_twist_joy for most gamepads: the left stick moves horizontally, the right one
# controls yaw and height. The left shoulder button enables commands.
_JOY = {
    "require_enable_button": True,
    "enable_button": 4,
    "axis_linear.x": 1,
    "axis_linear.y": 0,
    "axis_linear.z": 4,
    "axis_angular.yaw": 3,
    "scale_linear.x": 1.0,
    "scale_linear.y": 1.0,
    "scale_linear.z": 0.5,
    "scale_angular.yaw": 1.5,
}


def generate_launch_description() -> LaunchDescription:
    """Start the simulator with one drone, the gamepad, and the converter to velocities."""
    drone = LaunchConfiguration("drone")
    simulator = PathJoinSubstitution([FindPackageShare("crazyflow_ros"), "launch", "sim.launch.py"])
    return LaunchDescription(
        [
            DeclareLaunchArgument("drone", default_value="cf0", description="The drone to fly"),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(simulator),
                launch_arguments={"drones": ["[", drone, "]"]}.items(),
            ),
            Node(package="joy", executable="joy_node"),
            Node(
                package="teleop_twist_joy",
                executable="teleop_node",
                parameters=[_JOY],
                remappings=[("cmd_vel", ["/", drone, "/cmd_vel"])],
            ),
        ]
    )
