"""Start the simulator and a controller manager that flies its drones.

    ros2 launch crazyflow_ros ros2_control.launch.py drones:=[cf0,cf1] controller:=position

Both keep step: physics waits at each control period for the controllers' commands, unless `mode` is
free_running. Drones are held where they are until a controller commands them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from crazyflow_ros.resources import resource

TEMPLATE = "cf0"  # the drone that the file of controllers is about
BROADCASTERS = ("imu_broadcaster", "pose_broadcaster", "range_broadcaster")
ARGUMENTS = {
    "drones": ("[cf0]", "Names of the drones"),
    "drone_model": ("cf2x_L250", "Model of all drones"),
    "mode": ("lock_step", "lock_step, or free_running: nobody waits for anybody"),
    "rate": ("100", "Update rate of the controller manager, Hz"),
    "real_time_factor": ("1.0", "Simulated over wall time; 0 is as fast as possible"),
    "controller": ("rotor_velocity", "Started for each drone: rotor_velocity, attitude, position"),
    "controllers_file": (
        str(resource("config", "controllers.yaml")),
        "YAML file with the controllers of a drone cf0, which are repeated for each drone",
    ),
}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; what they ask for is started in `_start`."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=text)
                for name, (default, text) in ARGUMENTS.items()
            ),
            OpaqueFunction(function=_start),
        ]
    )


def _start(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    drones = [name.strip(" '\"") for name in given["drones"].strip("[] ").split(",")]
    rate = int(given["rate"])
    simulator = Node(
        package="crazyflow_ros",
        executable="simulator",
        name="crazyflow",
        parameters=[
            {
                "drones": ParameterValue(drones, value_type=list[str]),
                "drone_model": given["drone_model"],
                "real_time_factor": float(given["real_time_factor"]),
                "publish_rates.clock": rate,
                "ros2_control.mode": given["mode"],
                "ros2_control.rate": rate,
            }
        ],
        output="screen",
        on_exit=Shutdown(),
    )
    controllers = Path(tempfile.mkdtemp(prefix="crazyflow_ros_")) / "controllers.yaml"
    controllers.write_text(_for_drones(Path(given["controllers_file"]), drones, rate))
    manager = Node(
        package="controller_manager",
        # Without a name, which would keep simulated time from the nodes of the hardware.
        executable="ros2_control_node",
        parameters=[str(controllers), {"use_sim_time": True}],
        remappings=[("robot_description", "/crazyflow/robot_description")],
        output="screen",
        on_exit=Shutdown(),
    )
    wanted = (*BROADCASTERS, given["controller"])
    names = [f"{drone}_{name}" for drone in drones for name in wanted]
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        arguments=["joint_state_broadcaster", *names],
        output="screen",
    )
    return [simulator, manager, spawner]


def _for_drones(file: Path, drones: list[str], rate: int) -> str:
    """The file of controllers with all that is about the template's drone for each drone."""
    nodes: dict[str, Any] = yaml.safe_load(file.read_text())["/**"]
    parameters: dict[str, Any] = nodes["controller_manager"]["ros__parameters"]
    parameters["update_rate"] = rate
    nodes["controller_manager"]["ros__parameters"] = _repeated(parameters, drones)
    return yaml.safe_dump({"/**": _repeated(nodes, drones)})


def _repeated(entries: dict[str, Any], drones: list[str]) -> dict[str, Any]:
    repeated: dict[str, Any] = {}
    for key, value in entries.items():
        if key.startswith(f"{TEMPLATE}_"):
            for drone in drones:
                text = yaml.safe_dump({key: value}).replace(TEMPLATE, drone)
                repeated |= yaml.safe_load(text)
        else:
            repeated[key] = value
    return repeated
