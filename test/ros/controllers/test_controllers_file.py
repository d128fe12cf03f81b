"""`config/controllers.yaml` against the interfaces that a drone has."""

from __future__ import annotations

from typing import Any

import yaml

from crazyflow_ros.description.interfaces import AXES, BODY, GOAL, SENSORS, rotors
from crazyflow_ros.resources import resource


def test_controllers_use_what_a_drone_has() -> None:
    nodes: dict[str, Any] = yaml.safe_load(resource("config", "controllers.yaml").read_text())[
        "/**"
    ]
    components = {c.name("cf0"): c for c in (*rotors(4), *SENSORS, *AXES, BODY, GOAL)}
    types = nodes.pop("controller_manager")["ros__parameters"]
    for name, node in nodes.items():
        given = node["ros__parameters"]
        assert name in types and name not in components
        for sensor in (given.get("sensor_name"), given.get("pose_name")):
            assert sensor is None or sensor in components
        for joint in given.get("joints", []):
            assert set(given.get("interfaces", [])) <= set(components[joint].states)
            if "interface_name" in given:
                assert given["interface_name"] in components[joint].commands
        if "joint" in given:
            assert set(given["interface_names"]) <= set(components[given["joint"]].commands)
        for dof in given.get("dof_names", []):
            assert given["gains"][dof]["p"] > 0
            chained, _, axis = dof.rpartition("/")  # a controller takes the command, or we do
            taken = nodes[chained]["ros__parameters"] if chained else {}
            commands = taken.get("reference_and_state_interfaces") or components[axis].commands
            assert given["command_interface"] in commands
            assert not chained or axis in taken["dof_names"]
            assert set(given["reference_and_state_interfaces"]) <= set(components[axis].states)
