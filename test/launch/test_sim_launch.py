"""`launch/sim.launch.py`: which processes it starts, with which parameters."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from crazyswarm import configuration
from launching import (
    LaunchContext,
    LaunchDescription,
    Launcher,
    description,
    include,
    launch_actions,
    visit,
    visit_all,
)
from paths import ROOT

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.middleware import DISCOVERY

FILE, CONTROL, PX4 = "sim.launch.py", "ros2_control.launch.py", "px4.launch.py"
ARGUMENTS = {
    "n_drones", "drones", "drone_model", "real_time_factor", "start_paused", "scene", "namespace",
    "params_file", "rviz", "record", "headless", "freq", "publish_rates.clock",
    "publish_rates.joint_states", "ros2_control.mode", "ros2_control.rate",
    "ros2_control.robots", "sensors",
    "dynamics", "control", "policy", "foxglove", "view", "browser", "door", "door_drones",
    "door_settings", "autopilot.build", "autopilot.work", "autopilot.wipe", "discovery_range",
}  # fmt: skip


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    return Launcher(FILE, tmp_path, monkeypatch)


def simulator_parameters(launched: Launcher, **arguments: str) -> dict[str, Any]:
    (simulator,) = launched(1, **arguments)
    return simulator.parameters


def test_every_argument_is_documented() -> None:
    declared = {argument.name: argument for argument in description(FILE).get_launch_arguments()}
    assert declared.keys() == ARGUMENTS
    assert all(len(argument.description) > 20 for argument in declared.values())


@pytest.mark.parametrize("file", [FILE, "betaflight.launch.py", "hosts.launch.py"])
@pytest.mark.parametrize("before", ["", "SUBNET"])
def test_who_finds_the_nodes_is_an_argument(
    file: str, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DISCOVERY, before)
    visit_all(include(file), context := LaunchContext())
    assert context.environment[DISCOVERY] == before
    visit_all(include(file, discovery_range="LOCALHOST"), context)
    assert context.environment[DISCOVERY] == "LOCALHOST"
    with pytest.raises(RuntimeError, match=r'"discovery_range" .* "NETWORK" '):
        visit_all(include(file, discovery_range="NETWORK"), context)


def test_default_is_four_drones_and_no_rviz(launched: Launcher) -> None:
    (simulator,) = launched(1)
    assert simulator.executable == "simulator"
    assert "__node:=crazyflow" in simulator.command
    assert simulator.parameters["drones"] == ["cf0", "cf1", "cf2", "cf3"]
    assert "use_sim_time" not in simulator.parameters


def test_arguments_become_parameters_of_their_type(launched: Launcher) -> None:
    expected = {
        "drones": ["cf0", "cf1"], "drone_model": "cf21B_500", "real_time_factor": 2.0,
        "start_paused": True, "scene": "floor", "freq": 1000, "dynamics": "so_rpy",
        "control": "attitude", "ros2_control.mode": "off", "publish_rates.joint_states": 0,
    }  # fmt: skip
    given = {name: str(value).lower() for name, value in expected.items()}
    del given["drones"]
    given |= {"n_drones": "2", "drone_model": "cf21B_500", "real_time_factor": "2"}
    parameters = simulator_parameters(launched, **given)
    assert {name: parameters[name] for name in expected} == expected
    assert isinstance(parameters["real_time_factor"], float)


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
    publishers = {f"robot_state_publisher /lab/{drone}" for drone in "ab"}
    assert by_name.keys() == {"simulator /lab", "rviz2 /lab", *publishers}
    for drone in "ab":
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


def test_a_page_follows_the_simulator_in_its_namespace(launched: Launcher) -> None:
    processes = launched(2, view="true", namespace="lab")
    (page,) = [process for process in processes if process.executable == "view"]
    assert page.command[page.command.index("--namespace") + 1] == "/lab"
    assert page.command[page.command.index("--node") + 1] == "crazyflow"
    assert "--no-browser" in page.command  # nobody sits in front of a test


def test_the_page_is_opened_where_that_is_asked_for(launched: Launcher) -> None:
    processes = launched(2, view="true", browser="true")
    (page,) = [process for process in processes if process.executable == "view"]
    assert "--browser" in page.command


def test_foxglove_is_served_in_the_namespace_of_the_simulator(launched: Launcher) -> None:
    processes = launched(2, foxglove="true", namespace="lab")
    names = {f"{p.executable} {p.namespace}" for p in processes}
    assert names == {"simulator /lab", "foxglove /lab"}


@pytest.mark.parametrize(
    ("file", "argument", "value"),
    [
        (FILE, "n_drones", "0"),
        (FILE, "drones", "2b"),
        (FILE, "drones", "[a,a]"),
        (FILE, "real_time_factor", "fast"),
        (FILE, "real_time_factor", "nan"),
        (FILE, "start_paused", "maybe"),
        (FILE, "params_file", "absent.yaml"),
        (FILE, "rviz", "maybe"),
        (FILE, "door_settings", "[1]"),
        (CONTROL, "ros2_control.rate", "50"),
        (CONTROL, "ros2_control.mode", "off"),
        (CONTROL, "rate", "fast"),
        (CONTROL, "n_drones", "abc"),
        (CONTROL, "mode", "step"),
        (CONTROL, "managers", "two"),
        (CONTROL, "controller", "magic"),
        (CONTROL, "controllers_file", "absent.yaml"),
        (PX4, "instance", "x"),
        (PX4, "home", "47"),
        ("betaflight.launch.py", "build", "nowhere"),
    ],
)
def test_wrong_argument_is_named_with_its_value(
    launched: Launcher, file: str, argument: str, value: str
) -> None:
    with pytest.raises((ValueError, FileNotFoundError, RuntimeError)) as refused:
        visit(file, **{argument: value})
    said = str(refused.value)
    assert argument in said and value.strip("[]").split(",")[-1] in said


def test_wrong_argument_ends_the_launch(
    launched: Launcher, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("launch").addHandler(caplog.handler)  # it does not propagate
    assert launched(1, expected=1, n_drones="abc") == []
    assert "got 'abc'" in caplog.text


def test_launch_ends_with_the_simulator(
    launched: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_SECONDS", "0")
    assert len(launched(2)) == 1


def test_launch_fails_with_the_simulator(
    launched: Launcher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("launch").addHandler(caplog.handler)  # it does not propagate
    monkeypatch.setenv("STAND_IN_SECONDS", "no number")  # which is refused with 1
    assert len(launched(2, expected=1)) == 1
    assert "the simulator has ended with exit code 1" in caplog.text


def test_a_gamepad_flies_a_drone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = Launcher("teleop.launch.py", tmp_path, monkeypatch)
    processes = {process.executable: process for process in launched(3, drone="kite")}
    assert processes.keys() == {"simulator", "joy_node", "teleop_node"}
    assert processes["simulator"].parameters["drones"] == ["kite"]
    teleop = processes["teleop_node"]
    assert "cmd_vel:=/kite/cmd_vel" in teleop.command
    axes = [value for name, value in teleop.parameters.items() if name.startswith("axis_")]
    assert sorted(axes) == [0, 1, 3, 4]  # no two do the same


def test_a_gamepad_flies_one_of_several_drones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = Launcher("teleop.launch.py", tmp_path, monkeypatch)
    processes = launched(3, drone="cf1", n_drones="2", namespace="sim")
    by_name = {process.executable: process for process in processes}
    assert by_name["simulator"].parameters["drones"] == ["cf0", "cf1"]
    assert "cmd_vel:=/sim/cf1/cmd_vel" in by_name["teleop_node"].command


def test_a_gamepad_cannot_fly_a_drone_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="drone: expected one of cf0, cf1, got 'cf2'"):
        visit("teleop.launch.py", drone="cf2", n_drones="2")


@pytest.mark.parametrize(
    ("file", "arguments", "missing", "message"),
    [
        (FILE, {"rviz": "true"}, ["rviz2"], "rviz2 .* ros-kilted-rviz2$"),
        (
            FILE, {"rviz": "true"}, ["robot_state_publisher"],
            "robot_state_publisher .* ros-kilted-robot-state-publisher$",
        ),
        (
            "teleop.launch.py", {}, ["joy", "teleop_twist_joy"],
            "joy and teleop_twist_joy .* ros-kilted-joy ros-kilted-teleop-twist-joy$",
        ),
        (
            CONTROL, {}, ["controller_manager"],
            "controller_manager .* ros-kilted-controller-manager$",
        ),
    ],
)  # fmt: skip
def test_nothing_is_started_without_a_package(
    file: str,
    arguments: dict[str, str],
    missing: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """launch would end without the simulator that it has just started."""
    launched = Launcher(file, tmp_path, monkeypatch)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    monkeypatch.setenv("ROS_DISTRO", "kilted")
    for package in missing:
        (tmp_path / "share/ament_index/resource_index/packages" / package).unlink()
    logging.getLogger("launch").addHandler(caplog.handler)  # it does not propagate
    assert launched(1, expected=1, **arguments) == []
    assert re.search(message, caplog.text, re.MULTILINE)


@pytest.mark.parametrize(
    ("file", "given", "hint"),
    [
        ("sim.launch.py", "n_drone", r" \(did you mean 'n_drones'\?\)"),
        ("teleop.launch.py", "scen", r" \(did you mean 'scene'\?\)"),
        (CONTROL, "controler", r" \(did you mean 'controller'\?\)"),
        ("sim.launch.py", "use_sim_time", ""),
    ],
)
def test_an_argument_that_nobody_knows_is_refused(file: str, given: str, hint: str) -> None:
    """launch itself takes it in silence, from `ros2 launch` as from another launch file."""
    for parent in (LaunchDescription([include(file, **{given: "1"})]), xml_parent(file, given)):
        with pytest.raises(ValueError, match=f"{file} has no argument '{given}'{hint}; it has "):
            visit_all(parent, LaunchContext(argv=[f"{given}:=1"]))


def xml_parent(file: str, argument: str) -> LaunchDescription:
    pytest.importorskip("launch_xml")
    from launch.frontend import Parser

    path = resource("launch", file)
    text = f'<launch><include file="{path}"><arg name="{argument}" value="1"/></include></launch>'
    entity, parser = Parser.load(StringIO(text))
    return parser.parse_description(entity)


def test_arguments_of_another_launch_file_are_its_own(launched: Launcher) -> None:
    """An included file sees them, too, and some are called nearly as its own."""
    parent = LaunchDescription(
        [
            launch_actions.DeclareLaunchArgument("drone", default_value="cf7"),
            launch_actions.DeclareLaunchArgument("n_dronez", default_value="3"),
            include(FILE, n_drones="2"),
        ]
    )
    visit_all(parent, LaunchContext(argv=["drone:=cf8"]))


def test_a_launch_file_needs_no_physics(tmp_path: Path) -> None:
    """They are in the simulator's environment; `ros2 launch` may have the machine's Python."""
    crazyflies = tmp_path / "crazyflies.yaml"
    crazyflies.write_text(yaml.safe_dump(configuration("cf1")))
    code = f"""
import sys
sys.modules.update(dict.fromkeys(("jax", "mujoco", "scipy")))  # importing them fails
from launching import visit
visit("sim.launch.py")
visit("crazyswarm.launch.py", crazyflies_yaml_file={str(crazyflies)!r})
"""
    path = f"{ROOT / 'test'}:{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_rviz_cannot_be_told_is_refused_before_anything_starts(
    launched: Launcher, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("launch").addHandler(caplog.handler)  # it does not propagate
    assert launched(1, expected=1, rviz="true", sensors="absent.yaml") == []
    assert "absent.yaml" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- kite", r"no nodes with parameters, but \['kite'\]"),
        ("/**: 5", r"'/\*\*' is not under .* ros__parameters"),
        ("/**: {ros__parameters: [a]}", r"ros__parameters of /\*\* must be parameters by name"),
        ("{a: [", "line 1, column 6"),
    ],
)
@pytest.mark.parametrize(
    ("file", "argument"), [(FILE, "params_file"), (CONTROL, "controllers_file")]
)
def test_a_file_without_parameters_is_refused(
    tmp_path: Path, file: str, argument: str, text: str, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{argument}: .*{message}"):
        visit(file, **{argument: str(path)})
