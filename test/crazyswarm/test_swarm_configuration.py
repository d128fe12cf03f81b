"""crazyswarm2's files: what they mean, and what is refused."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from crazyswarm import configuration

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.crazyswarm.swarm_configuration import SwarmConfiguration
from crazyflow_ros.crazyswarm.tree import flattened, read_files, unflattened


def changed(where: str, value: Any, *robots: str) -> dict[str, Any]:
    """A configuration with another value at a place, or without it."""
    content = configuration(*(robots or ("cf1", "cf2")))
    *groups, last = where.split(".")
    place: Any = content
    for group in groups:
        place = place.setdefault(group, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return content


def test_robots_that_are_enabled_become_drones() -> None:
    content = changed("robots.cf2.enabled", False, "cf1", "cf2", "cf3")
    swarm = SwarmConfiguration(content)
    assert [robot.name for robot in swarm.robots] == ["cf1", "cf3"]
    assert swarm.robots[1].initial_position == (0.0, 0.8, 0.0)
    assert {robot.drone_model for robot in swarm.robots} == {"cf2x_L250"}
    assert all(robot.settings.is_tracked for robot in swarm.robots)


@pytest.mark.parametrize("enabled", [True, False])
def test_older_files_switch_motion_capture_on_and_off(enabled: bool) -> None:
    content = changed("robot_types.cf21.motion_capture", {"enabled": enabled, "marker": "x"})
    swarm = SwarmConfiguration(content)
    assert [robot.settings.is_tracked for robot in swarm.robots] == [enabled] * 2


def test_an_object_without_a_connection_is_no_drone() -> None:
    content = configuration("cf1", "ball")
    content["robot_types"]["marker"] = {"connection": "none"}
    content["robots"]["ball"]["type"] = "marker"
    assert [robot.name for robot in SwarmConfiguration(content).robots] == ["cf1"]


@pytest.mark.parametrize(
    ("kind", "settings", "model"),
    [
        ("cf21", {}, "cf2x_L250"),
        ("cf21B", {}, "cf21B_500"),
        ("cf2x_P250", {}, "cf2x_P250"),
        ("racer", {"drone_model": "cf2x_T350"}, "cf2x_T350"),
    ],
)
def test_types_name_drone_models(kind: str, settings: dict[str, str], model: str) -> None:
    content = changed("robots.cf1.type", kind, "cf1")
    content["robot_types"][kind] = settings
    assert SwarmConfiguration(content).robots[0].drone_model == model


def test_a_robot_goes_before_its_type_and_that_before_all() -> None:
    content = configuration("cf1", "cf2")
    everywhere, kind = content["all"], content["robot_types"]["cf21"]
    own = content["robots"]["cf1"]
    for layer, value in ((everywhere, 1), (kind, 2), (own, 3)):
        layer["firmware_params"] = {"kalman": {f"only{value}": value, "both": value}}
        layer["reference_frame"] = f"frame{value}"
    kind["firmware_logging"] = {"default_topics": {"pose": {"frequency": 50}}}
    own["firmware_logging"] = {"custom_topics": {"g": {"frequency": 30, "vars": ["gyro.x"]}}}
    first, second = (robot.settings for robot in SwarmConfiguration(content).robots)
    expected = {"kalman.only1": 1, "kalman.only2": 2, "kalman.only3": 3, "kalman.both": 3}
    assert first.firmware_params == expected
    assert second.firmware_params["kalman.both"] == 2
    assert (first.reference_frame, second.reference_frame) == ("frame3", "frame2")
    assert {t.name: t.period for t in first.log_topics} == {"pose": 2, "status": 100, "g": 3}
    assert {t.name: t.period for t in second.log_topics} == {"pose": 2, "status": 100}
    later = SwarmConfiguration(content).settings("spawned")
    assert (later.reference_frame, later.is_tracked) == ("frame1", False)


def test_without_logging_there_are_no_topics() -> None:
    swarm = SwarmConfiguration(changed("all.firmware_logging.enabled", False))
    assert not swarm.robots[0].settings.log_topics


def test_old_files_have_no_reference_frame() -> None:
    content = changed("all.reference_frame", "mocap") | {"fileversion": 2}
    assert SwarmConfiguration(content).robots[0].settings.reference_frame == "world"


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("robots", {}, "robots: .*enabled"),
        ("robots.cf1.enabled", "yes", "robots.cf1.enabled: .*'yes'"),
        ("robots.cf1.type", "octocopter", "robots.cf1.type: .*'octocopter'"),
        ("robots.cf1.type", "cf12", "robots.cf1.type: .*'cf12', only cf21, .*robot_types"),
        ("robots.cf1.initial_position", [0, 1], "initial_position: .*x, y, z"),
        ("robots.cf1.uri", None, "robots.cf1.uri: .*None"),
        ("all.firmware_params.led.bitmask", "on", "led.bitmask: .*'on'"),
        ("all.firmware_params.stabilizer.controller", math.inf, "controller: .*inf"),
        ("all.firmware_params.stabilizer.controller", math.nan, "controller: .*nan"),
        ("all.firmware_logging.default_topics.pose.frequency", 200, "from 0.4 to 100 Hz, got 200"),
        ("all.firmware_logging.default_topics.gps", {}, "'gps', only pose, scan, odom, status"),
        ("all.firmware_logging.custom_topics.a", {"frequency": 1}, "topics.a: .*vars"),
        ("warnings", 3, "warnings: .*3"),
        ("fileversion", [3], r"fileversion: .*\[3\]"),
    ],
)
def test_what_cannot_be_used_is_named(where: str, value: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        _ = SwarmConfiguration(changed(where, value)).statistics_period


@pytest.mark.parametrize(
    ("sim", "firmware", "flies", "note"),
    [
        (None, 1, "pid", None),
        ("mellinger", 2, "mellinger", None),
        ("pid", None, "pid", None),
        ("brescianini", 6, "brescianini", "sim.controller, brescianini: firmware_params.*6, is"),
        ("none", 1, "pid", "sim.controller is none, but drones need one: they fly with pid"),
    ],
)
def test_the_controller_is_that_of_the_simulator_or_else_of_the_firmware(
    sim: str | None, firmware: int | None, flies: str, note: str | None
) -> None:
    content = changed("all.firmware_params.stabilizer.controller", firmware)
    if sim is not None:
        content["sim"] = {"max_dt": 0.1, "backend": "np", "controller": sim}
    swarm = SwarmConfiguration(content)
    assert swarm.controller == flies
    assert len(swarm.notes) == (note is not None)
    assert note is None or re.search(note, swarm.notes[0])


@pytest.mark.parametrize("wrong", ["lee", 1, ["pid"]])
def test_an_unknown_controller_is_refused_with_the_known_ones(wrong: Any) -> None:
    swarm = SwarmConfiguration(configuration("cf1") | {"sim": {"controller": wrong}})
    with pytest.raises(ParameterError, match=r"sim.controller.*pid, mellinger, indi, bresc.*none"):
        _ = swarm.controller


@pytest.mark.parametrize(
    ("types", "models"),
    [
        (("mine", "mine"), ("cf2x_L250", "cf2x_L250")),
        (("mine", "yours"), ("cf2x_L250", "cf2x_L250")),
        (("cf21", "mine"), ("cf2x_L250", "cf2x_L250")),
        (("mine", "cf21bl"), ("cf21B_500", "cf21B_500")),  # all drones are alike
    ],
)
def test_types_may_have_any_name(types: tuple[str, str], models: tuple[str, str]) -> None:
    """As crazyswarm2 and CrazySim have them; the log says which drone is simulated, and why."""
    content = configuration("cf1", "cf2")
    for robot, kind in zip(("cf1", "cf2"), types):
        content["robots"][robot]["type"] = kind
        content["robot_types"].setdefault(kind, {"big_quad": False})
    swarm = SwarmConfiguration(content)
    assert tuple(robot.drone_model for robot in swarm.robots) == models
    (note,) = swarm.notes
    own = [kind for kind in ("mine", "yours") if kind in types]
    assert all(f"{kind} as {models[0]}" in note for kind in own)
    assert "add an entry drone_model to the type: cf2x_L250 | " in note and "cf21 as" not in note


def test_drones_of_two_models_are_refused() -> None:
    content = changed("robots.cf2.type", "cf21B")
    content["robot_types"]["cf21B"] = {}
    with pytest.raises(ParameterError, match=r"cf1 is a cf2x_L250, cf2 is a cf21B_500"):
        SwarmConfiguration(content)


def test_files_become_one_tree_and_parameters(tmp_path: Path) -> None:
    poses = {"topics": {"frame_id": "mocap", "poses": {"qos": {"deadline": 50.0}}}}
    server = {"ros__parameters": {"warnings": {"frequency": 2.0}}}
    paths = []
    for name, content in (
        ("crazyflies", configuration("cf1")),
        ("server", {"/crazyflie_server": server}),
        ("motion_capture", {"/motion_capture_tracking": {"ros__parameters": poses}}),
    ):
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))
        paths.append(str(path))
    tree = read_files(*paths)
    parameters = dict(flattened(tree))
    assert parameters["robots.cf1.initial_position"] == [0.0, 0.0, 0.0]
    assert parameters["warnings.frequency"] == 2.0
    assert unflattened(parameters) == tree
    swarm = SwarmConfiguration(unflattened(parameters))
    assert (swarm.poses_rate, swarm.poses_frame, swarm.statistics_period) == (50.0, "mocap", 0.0)


def test_numbers_are_read_as_ros_reads_them(tmp_path: Path) -> None:
    """YAML takes 1e-3 for a text, and ROS takes mixed lists for errors."""
    tree = {"all": {"firmware_params": {"locSrv": {"extPosStdDev": "1e-3"}}}, "sim": [0, 0.5]}
    parameters = dict(flattened(tree))
    assert math.isclose(parameters["all.firmware_params.locSrv.extPosStdDev"], 1e-3)
    assert parameters["sim"] == [0.0, 0.5]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"all": {"a": -(2**63) - 1}}, "all.a: expected whole numbers of 64 bits, got -9223"),
        ({"sim": {"b": [0, 2**64]}}, "sim.b: expected whole numbers of 64 bits, got "),
        ({"": True}, "a setting: expected a name before the colon, got True"),
    ],
)
def test_what_parameters_cannot_express_is_refused(tree: dict[str, Any], message: str) -> None:
    """rclpy would end the server with a SystemError, or an error that names no file."""
    with pytest.raises(ParameterError, match=message):
        dict(flattened(tree))
    assert dict(flattened({"all": {"a": 2**63 - 1, "b": -(2**63)}}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("robots: [", "crazyflies_yaml_file: .*line 1, column"),
        ("teleop: {}", "crazyflies_yaml_file: .*has no robots"),
        ("3", "crazyflies_yaml_file: .*has no robots"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "crazyflies.yaml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=message):
        read_files(str(path), "", "")
    path.write_text("robots: {}")
    with pytest.raises(ParameterError, match=r"server_yaml_file: .*has no /crazyfl"):
        read_files(str(path), str(path), "")
