"""`launch/sim.launch.py` under the real `launch` and `launch_ros`.

The executables are stand-ins that only wait, so that neither RViz nor the simulator is needed: what
is looked at is the command line and the parameters with which each process is started.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from crazyflow_ros.resources import resource

# Not `launch`: that is also the folder of our launch files.
launch_actions = pytest.importorskip(
    "launch.actions", reason="launch is part of ROS 2, and not among its wheels on PyPI"
)
pytest.importorskip(
    "launch_ros.actions", reason="launch_ros is part of ROS 2, and not among its wheels on PyPI"
)

from launch import LaunchContext, LaunchDescription, LaunchService  # noqa: E402
from launch.event_handlers import OnProcessStart  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from launch.logging import launch_config  # noqa: E402

ARGUMENTS = {
    "n_drones", "drones", "drone_model", "real_time_factor", "start_paused", "scene", "namespace",
    "params_file", "rviz",
}  # fmt: skip
EXECUTABLES = {
    "crazyflow_ros": "simulator",
    "robot_state_publisher": "robot_state_publisher",
    "rviz2": "rviz2",
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
                    self.parameters.update(node["ros__parameters"])

    @property
    def namespace(self) -> str:
        prefix = "__ns:="
        return next((a.removeprefix(prefix) for a in self.command if a.startswith(prefix)), "/")


Launcher = Callable[..., list[Process]]


def description() -> LaunchDescription:
    source = PythonLaunchDescriptionSource(str(resource("launch", "sim.launch.py")))
    return source.get_launch_description(LaunchContext())


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    """Launches until `n` processes have started, with stand-ins for all executables."""
    for package, executable in EXECUTABLES.items():
        stand_in = tmp_path / "lib" / package / executable
        stand_in.parent.mkdir(parents=True)
        stand_in.write_text("#!/bin/sh\nexec sleep ${STAND_IN_SECONDS:-60}\n")
        stand_in.chmod(0o755)
        marker = tmp_path / "share/ament_index/resource_index/packages" / package
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    inherited = os.environ.get("AMENT_PREFIX_PATH", "")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path}:{inherited}".rstrip(":"))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))
    launch_config.reset()

    def run(n: int, expected: int = 0, **arguments: str) -> list[Process]:
        processes = []

        def started(event: Any, context: LaunchContext) -> list[Any]:
            processes.append(Process(event.cmd))
            return [launch_actions.Shutdown()] if len(processes) == n else []

        service = LaunchService(noninteractive=True)
        service.include_launch_description(
            LaunchDescription(
                [
                    launch_actions.RegisterEventHandler(OnProcessStart(on_start=started)),
                    *(
                        launch_actions.SetLaunchConfiguration(name, value)
                        for name, value in arguments.items()
                    ),
                    *description().entities,
                    launch_actions.TimerAction(period=20.0, actions=[launch_actions.Shutdown()]),
                ]
            )
        )
        assert service.run() == expected
        return processes

    return run


def simulator_parameters(launched: Launcher, **arguments: str) -> dict[str, Any]:
    (simulator,) = launched(1, **arguments)
    return simulator.parameters


def test_every_argument_is_documented() -> None:
    declared = {argument.name: argument for argument in description().get_launch_arguments()}
    assert declared.keys() == ARGUMENTS
    assert all(len(argument.description) > 20 for argument in declared.values())


def test_default_is_four_drones_and_no_rviz(launched: Launcher) -> None:
    (simulator,) = launched(1)
    assert simulator.executable == "simulator"
    assert "__node:=crazyflow" in simulator.command
    assert simulator.parameters["drones"] == ["cf0", "cf1", "cf2", "cf3"]
    assert "use_sim_time" not in simulator.parameters


def test_arguments_become_parameters_of_their_type(launched: Launcher) -> None:
    parameters = simulator_parameters(
        launched,
        n_drones="2",
        drone_model="cf21B_500",
        real_time_factor="2",
        start_paused="true",
        scene="floor",
    )
    assert parameters["drones"] == ["cf0", "cf1"]
    assert parameters["drone_model"] == "cf21B_500"
    assert parameters["real_time_factor"] == 2.0
    assert isinstance(parameters["real_time_factor"], float)
    assert parameters["start_paused"] is True
    assert parameters["scene"] == "floor"


@pytest.mark.parametrize("drones", ["[alpha,on]", "alpha, on", "['alpha', 'on']"])
def test_drones_override_n_drones(launched: Launcher, drones: str) -> None:
    parameters = simulator_parameters(launched, drones=drones, n_drones="7")
    assert parameters["drones"] == ["alpha", "on"]


def test_own_params_file_is_kept_where_no_argument_is_given(
    launched: Launcher, tmp_path: Path
) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("crazyflow: {ros__parameters: {drones: [a, b], freq: 250, scene: floor}}")
    parameters = simulator_parameters(launched, params_file=str(file), scene="hall.xml")
    assert parameters == {"drones": ["a", "b"], "freq": 250, "scene": "hall.xml"}


def test_rviz_shows_every_drone_on_simulated_time(launched: Launcher) -> None:
    processes = launched(4, rviz="true", drones="[a,b]", namespace="lab", drone_model="cf2x_L250")
    by_name = {f"{p.executable} {p.namespace}": p for p in processes}
    assert by_name.keys() == {
        "simulator /lab",
        "robot_state_publisher /lab/a",
        "robot_state_publisher /lab/b",
        "rviz2 /lab",
    }
    for drone in ("a", "b"):
        publisher = by_name[f"robot_state_publisher /lab/{drone}"]
        robot = ElementTree.fromstring(publisher.parameters["robot_description"])
        assert robot.tag == "robot"
        assert f"{drone}/base_link" in {link.get("name") for link in robot.iter("link")}
        assert publisher.parameters["use_sim_time"] is True
    rviz = by_name["rviz2 /lab"]
    assert rviz.parameters["use_sim_time"] is True
    config = Path(rviz.command[rviz.command.index("-d") + 1]).read_text()
    assert "/lab/a/robot_description" in config
    assert "/lab/b/odom" in config


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("n_drones", "abc", "n_drones: expected a whole number of at least 1, got 'abc'"),
        ("n_drones", "0", "n_drones: expected a whole number of at least 1, got '0'"),
        ("drones", "[a,2b]", "drones: expected names like .* got '2b'"),
        ("drones", "[a,a]", "drones: names must differ"),
        ("real_time_factor", "fast", "real_time_factor: expected a number .* got 'fast'"),
        ("real_time_factor", "-1", "real_time_factor: expected a number .* got '-1'"),
        ("real_time_factor", "nan", "real_time_factor: expected a number .* got 'nan'"),
        ("start_paused", "maybe", "start_paused: expected true or false, got 'maybe'"),
        ("params_file", "absent.yaml", "params_file: there is no file 'absent.yaml'"),
        ("rviz", "maybe", 'Argument "rviz" provided value "maybe" is not valid'),
    ],
)
def test_wrong_argument_is_named(argument: str, value: str, message: str) -> None:
    context = LaunchContext()
    context.launch_configurations[argument] = value

    def visit_all() -> None:
        for entity in description().entities:
            entity.visit(context)

    with pytest.raises((ValueError, FileNotFoundError, RuntimeError), match=message):
        visit_all()


def test_wrong_argument_ends_the_launch(
    launched: Launcher, caplog: pytest.LogCaptureFixture
) -> None:
    assert launched(1, expected=1, n_drones="abc") == []
    assert "got 'abc'" in caplog.text


def test_launch_ends_with_the_simulator(
    launched: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_SECONDS", "0")
    assert len(launched(2)) == 1
