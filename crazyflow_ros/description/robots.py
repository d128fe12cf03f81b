"""Robots of a world in the description for a controller manager: their URDF, beside the drones."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from crazyflow_ros.checks import limits

PLUGIN = "crazyflow_ros/CrazyflowSystem"
MUJOCO_PLUGIN = "mujoco_ros2_control/MujocoSystemInterface"
"""Plugin of mujoco_ros2_control, whose place ours takes: parameters and interfaces are the same."""
_MOST = 10_000_000  # characters


def read_robots(path: str | Path, parameters: Mapping[str, str]) -> str:
    """Return the URDF of robots, whose hardware connects to this simulator.

    The plugin of mujoco_ros2_control is replaced by ours.

    Paths of files with gains may be relative to that of the URDF.

    Args:
        path: Path of a URDF file.
        parameters: Parameters of their hardware components with our plugin, unless the file has
            them.

    Raises:
        ValueError: There is no such file, or it is no URDF.
    """
    try:
        robot = ET.fromstring(limits.read_text(path, _MOST))
    except ET.ParseError as error:
        raise ValueError(f"{path} is no XML: {error}") from None
    if robot.tag != "robot":
        raise ValueError(f"{path} is no URDF: expected <robot>, got <{robot.tag}>")
    for hardware in robot.iterfind("ros2_control/hardware"):
        plugin = hardware.find("plugin")
        if plugin is None or (plugin.text or "").strip() not in (PLUGIN, MUJOCO_PLUGIN):
            continue
        plugin.text = PLUGIN
        there = {element.get("name"): element for element in hardware.iterfind("param")}
        if (gains := there.get("pids_config_file")) is not None:
            gains.text = str((Path(path).parent / (gains.text or "").strip()).resolve())
        for name, value in parameters.items():
            if name not in there:
                ET.SubElement(hardware, "param", name=name).text = value
    return ET.tostring(robot, encoding="unicode")


def joined(drones: str, robots: str) -> str:
    """Return the URDF of drones, whose root link is `map`, with that of robots.

    Another root link of the robots is at the origin of `map`.
    """
    robot, added = ET.fromstring(drones), ET.fromstring(robots)
    there = {(element.tag, element.get("name")) for element in robot}
    children = {child.get("link") for child in added.iterfind("joint/child")}
    for element in added:
        key = element.tag, element.get("name")
        if key in there:
            continue
        robot.append(element)
        if element.tag == "link" and key[1] not in children:
            joint = ET.SubElement(robot, "joint", name=f"map_to_{key[1]}", type="fixed")
            ET.SubElement(joint, "parent", link="map")
            ET.SubElement(joint, "child", link=str(key[1]))
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode")
