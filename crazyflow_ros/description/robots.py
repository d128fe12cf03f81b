"""Robots of a world in the description for a controller manager: their URDF, beside the drones."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from crazyflow_ros.checks import limits

PLUGIN = "crazyflow_ros/CrazyflowSystem"
_MOST = 10_000_000  # characters


def read_robots(path: str | Path, parameters: Mapping[str, str]) -> str:
    """Return the URDF of robots, whose hardware connects to this simulator.

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
        if (hardware.findtext("plugin") or "").strip() != PLUGIN:
            continue
        there = {element.get("name"): element for element in hardware.iterfind("param")}
        if (gains := there.get("pids_config_file")) is not None:
            gains.text = str((Path(path).parent / (gains.text or "").strip()).resolve())
        for name, value in parameters.items():
            if name not in there:
                ET.SubElement(hardware, "param", name=name).text = value
    return ET.tostring(robot, encoding="unicode")


def joined(drones: str, robots: str) -> str:
    """Return the URDF of drones with that of robots; both have the root link `map`."""
    robot = ET.fromstring(drones)
    there = {(element.tag, element.get("name")) for element in robot}
    for element in ET.fromstring(robots):
        if (element.tag, element.get("name")) not in there:
            robot.append(element)
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode")
