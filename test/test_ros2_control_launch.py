"""`launch/ros2_control.launch.py` and `config/controllers.yaml` under the real `launch`."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest
import yaml

from crazyflow_ros.hardware.interfaces import AXES, BODY, ROTORS, SENSORS
from crazyflow_ros.resources import resource

CONTROLLERS = resource("config", "controllers.yaml")


@pytest.fixture
def launch_file() -> ModuleType:
    for package in ("launch.actions", "launch_ros.actions"):
        pytest.importorskip(package, reason="launch is part of ROS 2, and not on PyPI")
    path = resource("launch", "ros2_control.launch.py")
    spec = importlib.util.spec_from_file_location("ros2_control_launch", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_controllers_use_what_a_drone_has() -> None:
    nodes: dict[str, Any] = yaml.safe_load(CONTROLLERS.read_text())["/**"]
    components = {c.name("cf0"): c for c in (*ROTORS, *SENSORS, *AXES, BODY)}
    types = nodes.pop("controller_manager")["ros__parameters"]
    for name, node in nodes.items():
        given = node["ros__parameters"]
        assert name in types and name not in components
        for sensor in (given.get("sensor_name"), given.get("pose_name")):
            assert sensor is None or sensor in components
        for joint in given.get("joints", []):
            assert given["interface_name"] in components[joint].commands
        if "joint" in given:
            assert set(given["interface_names"]) <= set(components[given["joint"]].commands)
        for dof in given.get("dof_names", []):
            assert given["command_interface"] in components[dof].commands
            assert set(given["reference_and_state_interfaces"]) <= set(components[dof].states)
            assert given["gains"][dof]["p"] > 0


def test_controllers_are_repeated_for_each_drone(launch_file: ModuleType) -> None:
    text = launch_file._for_drones(CONTROLLERS, ["alpha", "beta"], 500)
    nodes = yaml.safe_load(text)["/**"]
    manager = nodes["controller_manager"]["ros__parameters"]
    assert manager["update_rate"] == 500
    assert {"joint_state_broadcaster", "alpha_position", "beta_position"} <= manager.keys()
    joints = nodes["beta_rotor_velocity"]["ros__parameters"]["joints"]
    assert joints == [f"beta_rotor{i}" for i in range(4)]
    assert "cf0" not in text and "&id" not in text  # rcl reads no YAML aliases


def test_arguments_are_documented(launch_file: ModuleType) -> None:
    description = launch_file.generate_launch_description()
    declared = {a.name: a for a in description.get_launch_arguments()}
    assert declared.keys() == launch_file.ARGUMENTS.keys()
    assert all(a.description for a in declared.values())
