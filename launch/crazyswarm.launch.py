"""Start the simulator as crazyswarm2's server, with its own files.

    ros2 launch crazyflow_ros crazyswarm.launch.py crazyflies_yaml_file:=crazyflies.yaml

Run scripts of crazyswarm2 with `--ros-args -p use_sim_time:=true`.
"""

from __future__ import annotations

from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from crazyflow_ros.crazyswarm.swarm_configuration import SwarmConfiguration
from crazyflow_ros.crazyswarm.tree import read_files
from crazyflow_ros.ros.launch_nodes import described, end, rviz_nodes, typed
from crazyflow_ros.ros.launch_support import factor, flag, whole

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
    return described(
        __file__,
        [
            DeclareLaunchArgument(
                "crazyflies_yaml_file", description=FILES["crazyflies_yaml_file"]
            ),
            *(
                DeclareLaunchArgument(name, default_value="", description=FILES[name])
                for name in ("server_yaml_file", "motion_capture_yaml_file")
            ),
            *(
                DeclareLaunchArgument(
                    name, default_value="", description=f"{text} (default: the parameter's)"
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
        ],
    )


def _start(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    files = [given[name] for name in FILES]
    swarm = SwarmConfiguration(read_files(*files))
    parameters = dict(zip(FILES, files)) | _parse(given)
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
        names, model, given["sensors"], fixed_frame=frame, simulator="crazyflie_server"
    )
    return [server, *shown]


def _parse(given: dict[str, str]) -> dict[str, Any]:
    """Convert launch arguments to parameters of the right types."""
    parameters: dict[str, Any] = {}
    for name in PARAMETERS:
        if not given[name]:
            continue
        if name == "real_time_factor":
            parameters[name] = factor(given, name)
        elif name == "headless":
            parameters[name] = flag(given, name)
        elif name == "crazyflie.port":
            parameters[name] = whole(given, name, 0)
        else:
            parameters[name] = given[name]
    return parameters
