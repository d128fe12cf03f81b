"""The RViz configuration for any number of drones.

`rviz/crazyflow.rviz` shows cf0 to cf3, each in a display group of its own. Here its first group is
repeated for the drones that there are, with displays for what they carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from crazyflow_ros.ros.sensors.sensors_file import BEAMS, Device, SensorFile
from crazyflow_ros.sensors import (
    ContactSensorCfg,
    LidarPatternCfg,
    RangerSensorCfg,
    RayCastSensorCfg,
)
from crazyflow_ros.sensors.drone_rays import RaysCfg

_TRAIL_COLORS = ("255; 127; 14", "31; 119; 180", "44; 160; 44", "214; 39; 40", "148; 103; 189")
"""RGB, repeated from the start for more drones."""


def expand(
    template: str, drones: Sequence[str], namespace: str = "", sensors: SensorFile | None = None
) -> str:
    """Write the configuration for the given drones.

    Args:
        template: A configuration whose display groups each show one drone and bear its name.
        drones: Names of the drones to show.
        namespace: Namespace of the simulator, where the topics of the drones are.
        sensors: What the drones carry, to be shown, too.

    Returns:
        The configuration as text, in the format of an `.rviz` file.

    Raises:
        ValueError: The template has no display group.
    """
    config = yaml.safe_load(template)
    manager = config["Visualization Manager"]
    groups = [d for d in manager["Displays"] if d["Class"] == "rviz_common/Group"]
    if not groups:
        raise ValueError("the RViz configuration has no display group to repeat for each drone")
    root = f"/{namespace.strip('/')}".rstrip("/")
    manager["Displays"] = [d for d in manager["Displays"] if d not in groups]
    for index, drone in enumerate(drones):
        group = _renamed(groups[0], groups[0]["Name"], drone, root)
        for display in group["Displays"]:
            if "Shape" in display:
                display["Shape"]["Color"] = _TRAIL_COLORS[index % len(_TRAIL_COLORS)]
        for device in sensors.devices if sensors is not None else ():
            if sensors is not None and sensors.carries(drone, device):
                group["Displays"] += _displays(device, f"{root}/{drone}/{device.name}")
        manager["Displays"].append(group)
    return yaml.safe_dump(config, sort_keys=False)


def _displays(device: Device, topic: str) -> Iterator[dict[str, Any]]:
    """How RViz shows what a sensor publishes; what costs the most is off at first."""
    name = device.name
    if isinstance(device.cfg, RaysCfg):
        pattern = device.cfg.pattern
        is_planar = isinstance(pattern, LidarPatternCfg) and pattern.is_planar
        kind = "LaserScan" if is_planar else "PointCloud2"
        yield _display(kind, name, topic, {"Size (m)": 0.02, "Style": "Flat Squares"})
    elif device.type in ("range", "height"):
        yield _display("Range", name, topic)
    elif device.type == "multiranger":
        for beam in BEAMS:
            yield _display("Range", f"{name} {beam}", f"{topic}/{beam}")
    elif device.type == "motion_capture":
        yield _display("Pose", name, topic, {"Shape": "Axes", "Axes Length": 0.1})
    elif device.type == "contact":
        yield _display("Wrench", name, topic)
    elif device.type == "camera":
        yield _display("Image", name, f"{topic}/image_raw")
    if isinstance(device.cfg, RayCastSensorCfg | RangerSensorCfg | ContactSensorCfg):
        yield _display("MarkerArray", f"{name} drawn", f"{topic}/markers", {"Enabled": False})


def _display(
    kind: str, name: str, topic: str, more: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "Class": f"rviz_default_plugins/{kind}",
        "Name": name,
        "Enabled": True,
        "Topic": {
            "Depth": 5,
            "Durability Policy": "Volatile",
            "History Policy": "Keep Last",
            "Reliability Policy": "Reliable",
            "Value": topic,
        },
        **(more or {}),
    }


def _renamed(node: Any, old: str, new: str, root: str) -> Any:
    """A copy of a YAML tree with the drone `old` and its topics replaced."""
    if isinstance(node, dict):
        return {key: _renamed(value, old, new, root) for key, value in node.items()}
    if isinstance(node, list):
        return [_renamed(value, old, new, root) for value in node]
    if node == old:
        return new
    if isinstance(node, str) and node.startswith(f"/{old}/"):
        return f"{root}/{new}/{node.removeprefix(f'/{old}/')}"
    return node
