"""Start the simulator; `view:=true`, `rviz:=true` and `foxglove:=true` add what shows it.

    ros2 launch crazyflow_ros sim.launch.py n_drones:=4 real_time_factor:=2.0 rviz:=true

Each argument overrides the parameter of the same name in `params_file`; `ros2 launch -s` lists
them. All nodes except the simulator, which publishes /clock, use simulated time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from crazyflow_ros.drones import DEFAULT_DRONE
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described, end, rviz_nodes, typed
from crazyflow_ros.ros.launch_support import (
    drone_names,
    factor,
    flag,
    read_nodes,
    settings,
    whole,
)

NODE = "crazyflow"
ARGUMENTS = {
    "n_drones": "Number of drones, named cf0, cf1 and so on",
    "drones": "Names of the drones, for example [alpha,beta]; replaces n_drones",
    "drone_model": "Model of all drones, for example cf2x_L250, or path of a drone's folder",
    "real_time_factor": "Simulated time over wall time; 0 is as fast as possible",
    "start_paused": "true or false: start paused, until ~/pause is called with false",
    "scene": "Name of a scene in urdf_mjcf, or path of an MJCF file",
    "sensors": "YAML file with the sensors of the drones, for example config/sensors.yaml",
    "headless": "true or false: run without MuJoCo's viewer",
    "record": "MCAP file to record all topics and commands to",
    "dynamics": "Dynamics model, for example so_rpy",
    "control": "Control mode of the topic command, for example state or attitude",
    "policy": "File of a policy that flies all drones in place of the controllers",
    "freq": "Physics ticks per simulated second",
    "door": "Door through which other programs fly drones, for example px4",
    "door_drones": "Names of the drones that they fly, for example [cf1]; the others obey topics",
    "door_settings": "Parameters of the door as YAML, for example {port: 4570}",
    "autopilot.build": "Build of the door's autopilot, from which the simulator starts it",
    "autopilot.work": "Gets a folder for each autopilot, with parameters, logs and console.log",
    "autopilot.wipe": "true or false: remove these folders first, instead of keeping their state",
    "publish_rates.clock": "Rate of /clock [Hz]",
    "publish_rates.joint_states": "Rate of <drone>/joint_states [Hz]; 0 disables it",
    "ros2_control.mode": "off: topics command the drones; lock_step or free_running: ros2_control",
    "ros2_control.rate": "Update rate of the controller manager [Hz]",
    "ros2_control.robots": "URDF file of robots in the scene, or name of one in urdf_mjcf",
}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; `_start` starts the nodes."""
    return described(
        __file__,
        [
            *(
                DeclareLaunchArgument(
                    name, default_value="", description=f"{text} (default: value in params_file)"
                )
                for name, text in ARGUMENTS.items()
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of all nodes and topics"
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=str(resource("config", "simulator.yaml")),
                description="YAML file with the parameters of the simulator",
            ),
            DeclareLaunchArgument(
                "rviz",
                default_value="false",
                choices=["true", "false"],
                description="Also start RViz and a robot_state_publisher per drone",
            ),
            DeclareLaunchArgument(
                "view",
                default_value="false",
                choices=["true", "false"],
                description="Also serve a page for browsers at http://127.0.0.1:8080/",
            ),
            DeclareLaunchArgument(
                "browser",
                default_value="auto",
                choices=["auto", "true", "false"],
                description="Open that page in a browser; auto: in a terminal on a display",
            ),
            DeclareLaunchArgument(
                "foxglove",
                default_value="false",
                choices=["true", "false"],
                description="Also serve the simulation to Foxglove at ws://localhost:8765",
            ),
            OpaqueFunction(function=_start),
        ],
    )


def _start(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    namespace = given["namespace"].strip("/")
    from_file = _read_parameters(given["params_file"], namespace)
    overrides = _parse(given)
    simulator = Node(
        package="crazyflow_ros",
        executable="simulator",
        name=NODE,
        namespace=namespace,
        parameters=[
            str(Path(given["params_file"]).expanduser()),
            {key: typed(value) for key, value in overrides.items()},
        ],
        output="screen",
        on_exit=end,
    )
    nodes = [simulator]
    if given["view"] == "true":
        arguments = ["--node", NODE, "--namespace", f"/{namespace}", _browser(given["browser"])]
        nodes.append(
            Node(package="crazyflow_ros", executable="view", arguments=arguments, output="screen")
        )
    if given["foxglove"] == "true":
        nodes.append(
            Node(
                package="crazyflow_ros",
                executable="foxglove",
                namespace=namespace,
                output="screen",
            )
        )
    if given["rviz"] == "false":
        return nodes
    parameters: dict[str, Any] = {"drones": ["cf0"], "drone_model": DEFAULT_DRONE, "sensors": ""}
    parameters |= from_file | overrides
    drones, drone_model = parameters["drones"], parameters["drone_model"]
    return [*nodes, *rviz_nodes(drones, drone_model, parameters["sensors"], namespace)]


def _browser(choice: str) -> str:
    """Return the option of the page, which has no terminal of its own."""
    is_terminal = sys.stdout.isatty() and not os.environ.get("CI")
    is_wanted = is_terminal if choice == "auto" else choice == "true"
    return "--browser" if is_wanted else "--no-browser"


def _parse(given: dict[str, str]) -> dict[str, Any]:
    """Convert launch arguments to parameters of the right types."""
    parameters: dict[str, Any] = {}
    if drones := drone_names(given):
        parameters["drones"] = drones
    if given["real_time_factor"]:
        parameters["real_time_factor"] = factor(given, "real_time_factor")
    if given["door_drones"]:
        parameters["door_drones"] = drone_names({"drones": given["door_drones"]})
    for key, value in settings(given, "door_settings").items():
        parameters[f"{given['door']}.{key}"] = value
    for key in ("start_paused", "headless", "autopilot.wipe"):
        if given[key]:
            parameters[key] = flag(given, key)
    for key in ("freq", "ros2_control.rate", "publish_rates.clock"):
        if given[key]:
            parameters[key] = whole(given, key)
    if given["publish_rates.joint_states"]:
        parameters["publish_rates.joint_states"] = whole(given, "publish_rates.joint_states", 0)
    texts = (
        *("drone_model", "dynamics", "control", "policy", "scene", "sensors", "record"),
        *("ros2_control.mode", "ros2_control.robots"),
        *("door", "autopilot.build", "autopilot.work"),
    )
    parameters.update({key: given[key] for key in texts if given[key]})
    return parameters


def _read_parameters(params_file: str, namespace: str) -> dict[str, Any]:
    nodes = read_nodes("params_file", params_file)
    parameters: dict[str, Any] = {}
    for node in ("/**", NODE, f"/{NODE}", f"/{namespace}/{NODE}"):
        parameters.update(nodes.get(node, {}).get("ros__parameters", {}))
    return parameters
