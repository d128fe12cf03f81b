"""Nodes and actions that launch files share. Needs `launch`, which is not on PyPI."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    SetEnvironmentVariable,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from crazyflow_ros.ros.launch_support import refuse_unknown
from crazyflow_ros.ros.middleware import DISCOVERY


def end(event: ProcessExited, context: LaunchContext) -> Shutdown:
    """Shut down when the simulator ends, and fail if it failed, which launch itself ignores.

    Raises:
        RuntimeError: The simulator failed.
    """
    if event.returncode and not context.is_shutdown:
        raise RuntimeError(f"the simulator has ended with exit code {event.returncode}")
    return Shutdown(reason="the simulator has ended")


def described(file: str, entities: Sequence[LaunchDescriptionEntity]) -> LaunchDescription:
    """Return the description of a launch file, which first refuses arguments that it does not have.

    Its argument `discovery_range` says who can find the nodes.

    Args:
        file: Path of the launch file.
        entities: What it consists of.
    """

    def check(context: LaunchContext) -> None:
        known = [argument.name for argument in description.get_launch_arguments()]
        refuse_unknown(file, known, _passed(file, context))

    description = LaunchDescription(
        [
            OpaqueFunction(function=check),
            DeclareLaunchArgument(
                "discovery_range",
                default_value="",
                choices=["", "LOCALHOST", "SUBNET"],
                description="Who can find the nodes: programs on this machine only, or also those "
                f"in the local network (default: {DISCOVERY}, or ROS's own)",
            ),
            OpaqueFunction(function=_choose_discovery),
            *entities,
        ]
    )
    return description


def _choose_discovery(context: LaunchContext) -> list[SetEnvironmentVariable]:
    chosen = context.launch_configurations["discovery_range"]
    return [SetEnvironmentVariable(DISCOVERY, chosen)] if chosen else []


def _passed(file: str, context: LaunchContext) -> list[str]:
    """Return the names of the arguments that a launch file is included with.

    `ros2 launch` includes it, too. launch itself only tells which arguments are visible, and those
    of the including file are among them. So look for the action that includes this file among the
    callers.
    """
    frame = inspect.currentframe()
    while frame and not isinstance(frame.f_locals.get("entity"), IncludeLaunchDescription):
        frame = frame.f_back
    if frame is None:
        return []
    action = frame.f_locals["entity"]
    location = Path(action.launch_description_source.location)  # of a file or `<script>`
    if not location.exists() or not location.samefile(file):
        return []
    names = (normalize_to_list_of_substitutions(name) for name, _ in action.launch_arguments)
    return [perform_substitutions(context, name) for name in names]


def require(*packages: str) -> None:
    """Check that packages are installed, before anything is started.

    launch looks for a package when it starts the package's node. If that fails, it ends at once and
    leaves behind the processes that it has just started.

    Raises:
        RuntimeError: A package is not installed; the message says how to install all of them.
    """
    missing = []
    for package in packages:
        try:
            get_package_prefix(package)
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        distribution = os.environ.get("ROS_DISTRO", "<distribution>")
        names = (f"ros-{distribution}-{package.replace('_', '-')}" for package in missing)
        raise RuntimeError(
            f"{' and '.join(missing)} {'are' if missing[1:] else 'is'} not installed: "
            f"sudo apt install {' '.join(names)}"
        )


def typed(value: Any) -> ParameterValue:
    """Wrap a value with its type, which launch would otherwise guess from its text."""
    return ParameterValue(value, value_type=list[str] if isinstance(value, list) else type(value))


def rviz_nodes(
    drones: Sequence[str],
    drone_model: str,
    sensors_file: str,
    namespace: str = "",
    fixed_frame: str = "map",
    simulator: str = "crazyflow",
) -> list[Node]:
    """Return RViz for the drones and their sensors, and a robot_state_publisher for each drone.

    Args:
        drones: Names of the drones.
        drone_model: Their model.
        sensors_file: The file of the parameter `sensors`, or an empty string.
        namespace: Namespace of the simulator.
        fixed_frame: The frame of the world.
        simulator: Name of the simulator's node.

    Raises:
        RuntimeError: RViz or robot_state_publisher is not installed.
        ValueError: The drone's model or the sensors file is refused.
    """
    require("robot_state_publisher", "rviz2")
    folder = Path(tempfile.mkdtemp(prefix="crazyflow_ros_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write_files(
        {
            "folder": str(folder),
            "drones": list(drones),
            "drone_model": drone_model,
            "sensors_file": sensors_file,
            "namespace": namespace,
            "fixed_frame": fixed_frame,
            "simulator": simulator,
        }
    )
    state_publishers = [
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            namespace=f"{namespace}/{drone}".strip("/"),
            parameters=[
                {
                    "robot_description": typed((folder / f"{drone}.urdf").read_text()),
                    "use_sim_time": True,
                }
            ],
        )
        for drone in drones
    ]
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        namespace=namespace,
        arguments=["-d", str(folder / "crazyflow.rviz")],
        parameters=[{"use_sim_time": True}],
    )
    return [*state_publishers, rviz]


def _write_files(arguments: dict[str, Any]) -> None:
    """Run `rviz_files`, which has the Python of the simulator.

    That of `ros2 launch` may be another one, without MuJoCo: the machine's own, where the simulator
    is built in a virtual environment.

    Raises:
        ValueError: The drone's model or the sensors file is refused.
    """
    program = Path(get_package_prefix("crazyflow_ros"), "lib", "crazyflow_ros", "rviz_files")
    command = [str(program), json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip() or f"{program} has ended with {done.returncode}")
