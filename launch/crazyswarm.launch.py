"""Start the simulator as crazyswarm2's server, with its own files.

    ros2 launch crazyflow_ros crazyswarm.launch.py crazyflies_yaml_file:=crazyflies.yaml

Run scripts of crazyswarm2 with `--ros-args -p use_sim_time:=true`.
"""

from __future__ import annotations

import sys
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from crazyflow_ros.plain_values import declarations
from crazyflow_ros.ros.crazyswarm.configuration import Swarm
from crazyflow_ros.ros.crazyswarm.tree import read_files
from crazyflow_ros.ros.launch_nodes import end, rviz_nodes, typed
from crazyflow_ros.ros.launch_support import refuse_unknown
from crazyflow_ros.ros.parameters.node_parameters import Parameters

NODE = "crazyflie_server"
FILES = {
    "crazyflies_yaml_file": "Path of crazyswarm2's crazyflies.yaml: the robots",
    "server_yaml_file": "Path of crazyswarm2's server.yaml; empty: defaults",
    "motion_capture_yaml_file": "Path of crazyswarm2's motion_capture.yaml; empty: defaults",
}
PARAMETERS = {
    "real_time_factor": "Simulated time over wall time; 0 is as fast as possible",
    "scene": "Name of a scene in urdf_mjcf, or path of an MJCF file",
    "sensors": "YAML file with further sensors of the drones",
    "headless": "true or false: run without MuJoCo's viewer",
    "record": "MCAP file to record all topics and commands to",
    "crazyflie.port": "UDP port of the first drone for cflib; 0: off",
}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; `_start` starts the nodes."""
    default = {d.name: d.default for d in declarations(Parameters)}
    return LaunchDescription(
        [
            OpaqueFunction(function=_check_arguments),
            DeclareLaunchArgument(
                "crazyflies_yaml_file", description=FILES["crazyflies_yaml_file"]
            ),
            *(
                DeclareLaunchArgument(name, default_value="", description=FILES[name])
                for name in ("server_yaml_file", "motion_capture_yaml_file")
            ),
            *(
                DeclareLaunchArgument(
                    name, default_value=str(default[name]).lower(), description=text
                )
                for name, text in PARAMETERS.items()
            ),
            DeclareLaunchArgument(
                "rviz",
                default_value="false",
                choices=["true", "false"],
                description="Also start RViz and a robot_state_publisher per drone",
            ),
            OpaqueFunction(function=_start),
        ]
    )


def _check_arguments(context: LaunchContext) -> None:
    known = [argument.name for argument in generate_launch_description().get_launch_arguments()]
    refuse_unknown(__file__, known, context.argv, sys.argv)


def _start(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    files = [given[name] for name in FILES]
    swarm = Swarm(read_files(*files))
    parameters: dict[str, Any] = dict(zip(FILES, files))
    for declaration in declarations(Parameters):
        if declaration.name in PARAMETERS:
            text = given[declaration.name]
            value = text == "true" if text in ("true", "false") else declaration.parsed(text)
            parameters[declaration.name] = declaration.checked(value)
    if given["rviz"] == "true":
        parameters["publish_rates.joint_states"] = 100  # for the rotors
    server = Node(
        package="crazyflow_ros",
        executable="crazyflie_server",
        name=NODE,
        parameters=[{name: typed(value) for name, value in parameters.items()}],
        output="screen",
        on_exit=end,
    )
    if given["rviz"] == "false":
        return [server]
    names = [robot.name for robot in swarm.robots]
    frame = swarm.robots[0].settings.reference_frame
    model = swarm.robots[0].drone_model
    shown = rviz_nodes(
        names, model, parameters["sensors"], fixed_frame=frame, simulator="crazyflie_server"
    )
    return [server, *shown]
