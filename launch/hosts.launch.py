r"""Start simulators that share one world and one time, each in a namespace of its own.

    ros2 launch crazyflow_ros hosts.launch.py n_drones:=20

On two machines, start one of them on each, and say where the machines are:

    ros2 launch crazyflow_ros hosts.launch.py n_drones:=20 addresses:=[10.0.0.1,10.0.0.2] \
        only:=left
    ros2 launch crazyflow_ros hosts.launch.py n_drones:=20 addresses:=[10.0.0.1,10.0.0.2] \
        only:=right

docs/guides/scale.md explains it. Other parameters of the simulators come from `params_file`.
"""

from __future__ import annotations

from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described, end, typed
from crazyflow_ros.ros.launch_support import drone_names, factor, flag, whole

_LOCAL = "127.0.0.1"
ARGUMENTS = {
    "n_drones": ("4", "Number of all drones, named cf0, cf1 and so on, which are divided evenly"),
    "simulators": ("[left,right]", "Names of the simulators, which are also their namespaces"),
    "addresses": (_LOCAL, "Addresses of their hosts, one for each; or one for all of them"),
    "port": ("7447", "TCP port of the first simulator; the ports of the others follow"),
    "only": ("", "The simulator to start on this machine; empty: all of them"),
    "one_graph": ("true", "true or false: one ROS graph, in which only the first has /clock, /tf"),
    "real_time_factor": ("1.0", "Simulated time over wall time; 0 is as fast as possible"),
    "start_paused": ("false", "true or false: start paused, until one's ~/pause is called"),
    "drone_collisions": ("true", "true or false: drones collide with one another"),
    "params_file": (
        str(resource("config", "simulator.yaml")),
        "YAML file with the other parameters of all simulators",
    ),
}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; `_start` starts the nodes."""
    return described(
        __file__,
        [
            *(
                DeclareLaunchArgument(name, default_value=value, description=text)
                for name, (value, text) in ARGUMENTS.items()
            ),
            OpaqueFunction(function=_start),
        ],
    )


def _start(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    simulators = _listed(given["simulators"])
    if (only := given["only"]) and only not in simulators:
        raise ValueError(f"only: expected one of {', '.join(simulators)}, got {only!r}")
    if len(simulators) < 2:
        raise ValueError(f"simulators: expected at least 2 names, got {given['simulators']!r}")
    started = [only] if only else simulators
    return [_node(given, simulators, name) for name in started]


def _node(given: dict[str, str], simulators: list[str], name: str) -> Node:
    """Return a simulator, which others may reach, and which reaches those before it."""
    index, drones = simulators.index(name), drone_names({"n_drones": given["n_drones"]})
    ends = [len(drones) * i // len(simulators) for i in range(len(simulators) + 1)]
    endpoints = _endpoints(given, len(simulators))
    follows = index > 0 and flag(given, "one_graph")
    parameters: dict[str, Any] = {
        "drones": drones,
        "real_time_factor": factor(given, "real_time_factor"),
        "start_paused": flag(given, "start_paused"),
        "drone_collisions": flag(given, "drone_collisions"),
        "hosts.name": name,
        "hosts.peers": [other for other in simulators if other != name],
        "hosts.drones": drones[ends[index] : ends[index + 1]],
        "hosts.listen": [endpoints[index]],
        "hosts.connect": endpoints[:index],
    }
    if follows:
        parameters["publish_rates.tf"] = 0
    return Node(
        package="crazyflow_ros",
        executable="simulator",
        name="crazyflow",
        namespace=name,
        parameters=[
            given["params_file"],
            {key: typed(value) for key, value in parameters.items() if value != []},
        ],
        remappings=[("/clock", f"/{name}/clock")] if follows else [],
        output="screen",
        on_exit=end,
    )


def _endpoints(given: dict[str, str], n: int) -> list[str]:
    """Return Zenoh's endpoints of the simulators."""
    addresses = _listed(given["addresses"])
    if len(addresses) not in (1, n):
        text = given["addresses"]
        raise ValueError(f"addresses: expected one for each of {n} simulators, got {text!r}")
    addresses *= n // len(addresses)
    port = whole(given, "port")
    return [f"tcp/{address}:{port + i}" for i, address in enumerate(addresses)]


def _listed(text: str) -> list[str]:
    """Return the parts of a list such as [left,right]."""
    return [part.strip(" '\"") for part in text.strip("[] ").split(",")]
