"""Launch files under the real `launch` and `launch_ros`, whose executables are stand-ins.

They only wait, once the simulator's has said that it is ready, so that neither RViz nor the
simulator is needed; only the program that writes RViz's files is the real one, and, for tests that
ask for it, the simulator. What is looked at is
the command line and the parameters with which each process is started. A module that imports this
is skipped where there is no `launch`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_support import READY

# Not `launch`: that is also the folder of our launch files.
launch_actions = pytest.importorskip(
    "launch.actions", reason="launch is part of ROS 2, and not among its wheels on PyPI"
)
pytest.importorskip(
    "launch_ros.actions", reason="launch_ros is part of ROS 2, and not among its wheels on PyPI"
)

from launch import (  # noqa: E402
    LaunchContext,
    LaunchDescription,
    LaunchDescriptionEntity,
    LaunchService,
)
from launch.event_handlers import OnProcessStart  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from launch.logging import launch_config  # noqa: E402

EXECUTABLES = {
    "crazyflow_ros": ("simulator", "crazyflie_server", "foxglove", "view", "rviz_files"),
    "robot_state_publisher": ("robot_state_publisher",),
    "rviz2": ("rviz2",),
    "controller_manager": ("ros2_control_node", "spawner"),
    "forward_command_controller": (),
    "imu_sensor_broadcaster": (),
    "joint_state_broadcaster": (),
    "pid_controller": (),
    "pose_broadcaster": (),
    "range_sensor_broadcaster": (),
    "diff_drive_controller": (),
    "joint_trajectory_controller": (),
    "joint_state_topic_hardware_interface": (),
    "cm_topic_hardware_component": (),
    "joy": ("joy_node",),
    "teleop_twist_joy": ("teleop_node",),
}


class Process:
    """A started process, by its command line."""

    def __init__(self, command: list[str]) -> None:
        self.executable = Path(command[0]).name
        self.command = command
        self.parameters: dict[str, Any] = {}
        for flag, value in pairwise(command):
            if flag == "--params-file":
                for node in yaml.safe_load(Path(value).read_text()).values():
                    self.parameters.update(node.get("ros__parameters", node))

    @property
    def namespace(self) -> str:
        """In which its node is."""
        prefix = "__ns:="
        return next((a.removeprefix(prefix) for a in self.command if a.startswith(prefix)), "/")

    @property
    def arguments(self) -> list[str]:
        """Its own, before those of ROS."""
        return self.command[1 : self.command.index("--ros-args")]


def description(file: str) -> LaunchDescription:
    """What a launch file of ours returns."""
    source = PythonLaunchDescriptionSource(str(resource("launch", file)))
    return source.get_launch_description(LaunchContext())


def include(file: str, **arguments: str) -> launch_actions.IncludeLaunchDescription:
    """The action that includes a launch file of ours."""
    source = PythonLaunchDescriptionSource(str(resource("launch", file)))
    return launch_actions.IncludeLaunchDescription(source, launch_arguments=arguments.items())


def visit(file: str, **arguments: str) -> None:
    """Evaluate a launch file that is included, without starting anything."""
    visit_all(include(file, **arguments), LaunchContext())


def visit_all(entity: LaunchDescriptionEntity, context: LaunchContext) -> None:
    """Evaluate an entity and what it consists of, without starting anything."""
    if not isinstance(entity, launch_actions.ExecuteProcess):
        for part in entity.visit(context) or []:
            visit_all(part, context)


_REAL = {"rviz_files": "crazyflow_ros.ros.rviz_files", "simulator": "crazyflow_ros"}  # modules


class Launcher:
    """Launches a file of ours until `n` processes have started.

    Args:
        file: Its name.
        folder: Gets the stand-ins.
        monkeypatch: Sets the variables by which launch finds them.
        simulates: Whether the simulator is the real one.
    """

    def __init__(
        self, file: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, simulates: bool = False
    ) -> None:
        self._file = file
        real = _REAL.keys() - (() if simulates else {"simulator"})
        for package, executables in EXECUTABLES.items():
            for executable in executables:
                stand_in = folder / "lib" / package / executable
                stand_in.parent.mkdir(parents=True, exist_ok=True)
                if executable in real:
                    stand_in.write_text(
                        f'#!/bin/sh\nexec {sys.executable} -m {_REAL[executable]} "$@"\n'
                    )
                    stand_in.chmod(0o755)
                    continue
                says = f'echo "{READY}1 x cf2x_L250" >&2\n' if package == "crazyflow_ros" else ""
                ends = ":" if executable == "spawner" else "exec sleep ${STAND_IN_SECONDS:-60}"
                stand_in.write_text(f"#!/bin/sh\n{says}{ends}\n")
                stand_in.chmod(0o755)
            marker = folder / "share/ament_index/resource_index/packages" / package
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
        plugin = marker.parents[1] / "hardware_interface__pluginlib__plugin" / "crazyflow_ros"
        plugin.parent.mkdir()
        plugin.touch()
        share = folder / "share" / "crazyflow_ros"
        share.mkdir(exist_ok=True)
        (share / "launch").symlink_to(resource("launch", file).parent)
        inherited = os.environ.get("AMENT_PREFIX_PATH", "")
        monkeypatch.setenv("AMENT_PREFIX_PATH", f"{folder}:{inherited}".rstrip(":"))
        monkeypatch.setenv("ROS_LOG_DIR", str(folder / "log"))
        launch_config.reset()

    def __call__(self, n: int, expected: int = 0, **arguments: str) -> list[Process]:
        """The processes; `expected` is the exit code."""
        processes = []

        def started(event: Any, context: LaunchContext) -> list[Any]:
            processes.append(Process(event.cmd))
            return [launch_actions.Shutdown()] if len(processes) == n else []

        service = LaunchService(noninteractive=True)
        service.include_launch_description(
            LaunchDescription(
                [
                    launch_actions.RegisterEventHandler(OnProcessStart(on_start=started)),
                    include(self._file, **arguments),
                    launch_actions.TimerAction(period=20.0, actions=[launch_actions.Shutdown()]),
                ]
            )
        )
        assert service.run() == expected
        return processes

    def during(self, flight: Callable[[], None], **arguments: str) -> None:
        """Launch it, and end it after a flight, which is in a thread of its own."""
        service, failures = LaunchService(noninteractive=True), list[BaseException]()
        service.include_launch_description(LaunchDescription([include(self._file, **arguments)]))

        def fly() -> None:
            try:
                flight()
            except BaseException as error:
                failures.append(error)
            finally:
                service.shutdown()

        thread = threading.Thread(target=fly, daemon=True)
        thread.start()
        code = service.run()
        thread.join()
        for failure in failures:
            raise failure
        assert code == 0
