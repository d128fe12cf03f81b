"""Nodes and actions that launch files share. Needs `launch`, which PyPI does not have."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_prefix
from launch import LaunchContext
from launch.actions import Shutdown
from launch.events.process import ProcessExited
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from crazyflow_ros.resources import resource


def end(event: ProcessExited, context: LaunchContext) -> Shutdown:
    """Shut down when the simulator ends, and fail if it failed: launch itself ignores that.

    Raises:
        RuntimeError: The simulator failed.
    """
    if event.returncode and not context.is_shutdown:
        raise RuntimeError(f"the simulator has ended with exit code {event.returncode}")
    return Shutdown(reason="the simulator has ended")


def require(*packages: str) -> None:
    """Check that packages are installed, before anything is started.

    launch looks for a package when it starts the package's node. If that fails, it ends at once and
    leaves behind the processes that it has just started.

    Raises:
        PackageNotFoundError: A package is not installed.
    """
    for package in packages:
        get_package_prefix(package)


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
        PackageNotFoundError: RViz or robot_state_publisher is not installed.
    """
    require("robot_state_publisher", "rviz2")
    # Imported here: physics and MuJoCo load slowly.
    from crazyflow_ros.description.urdf import urdf
    from crazyflow_ros.ros.sensors.rviz_config import expand
    from crazyflow_ros.ros.sensors.sensors_file import load

    sensors = load(sensors_file, drones, drone_model)
    template = resource("rviz", "crazyflow.rviz").read_text()
    template = template.replace("Fixed Frame: map", f"Fixed Frame: {fixed_frame}")
    folder = tempfile.mkdtemp(prefix="crazyflow_ros_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    config = Path(folder) / "crazyflow.rviz"
    config.write_text(expand(template, drones, namespace, sensors, simulator))
    state_publishers = [
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            namespace=f"{namespace}/{drone}".strip("/"),
            parameters=[
                {"robot_description": typed(urdf(drone_model, drone)), "use_sim_time": True}
            ],
        )
        for drone in drones
    ]
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        namespace=namespace,
        arguments=["-d", str(config)],
        parameters=[{"use_sim_time": True}],
    )
    return [*state_publishers, rviz]
