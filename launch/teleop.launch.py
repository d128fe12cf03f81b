"""Start the simulator and fly one of its drones with a gamepad.

    ros2 launch crazyflow_ros teleop.launch.py drone:=cf0

For a keyboard, use a separate terminal:

    ros2 run teleop_twist_keyboard teleop_twist_keyboard --ros-args -r cmd_vel:=/cf0/cmd_vel
"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described, require
from crazyflow_ros.ros.launch_support import drone_names

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
    """Declare the argument; `sim.launch.py` and `_gamepad` start the nodes."""
    return described(
        __file__,
        [
            DeclareLaunchArgument("drone", default_value="cf0", description="The drone to fly"),
            OpaqueFunction(function=_configure),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(resource("launch", "sim.launch.py")))
            ),
            OpaqueFunction(function=_gamepad),
        ],
    )


def _configure(context: LaunchContext) -> None:
    """Let the simulator have the drone, unless it is told which ones it has."""
    given = context.launch_configurations
    drones = drone_names(given)
    if not drones:
        given["drones"] = f"[{given['drone']}]"
    elif given["drone"] not in drones:
        raise ValueError(f"drone: expected one of {', '.join(drones)}, got {given['drone']!r}")
    require("joy", "teleop_twist_joy")


def _gamepad(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    topic = f"{given['namespace']}/{given['drone']}/cmd_vel".strip("/")
    return [
        Node(package="joy", executable="joy_node"),
        Node(
            package="teleop_twist_joy",
            executable="teleop_node",
            parameters=[_JOY],
            remappings=[("cmd_vel", f"/{topic}")],
        ),
    ]
