"""Writes the files that RViz and robot_state_publisher need to show drones, for the launch files.

rviz_files '{"folder": "/a/folder", "drones": ["cf0"], "drone_model": "cf2x_L250", ...}'

`rviz/crazyflow.rviz` shows cf0 to cf3, each in a display group of its own. Here its first group is
repeated for each drone of the simulation, with displays for its sensors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.sensors.devices import Device, SensorFile
from crazyflow_ros.ros.sensors.sensors_file import load

_POINTS = {"Size (m)": 0.02, "Style": "Flat Squares"}
_PROPERTIES: dict[str, dict[str, Any]] = {
    "LaserScan": {**_POINTS, "Color Transformer": "FlatColor", "Color": ""},
    "PointCloud2": {**_POINTS, "Color Transformer": "AxisColor", "Axis": "Z"},
    "Range": {"Alpha": 0.15, "Color": ""},  # otherwise the cones hide the drones
    "Pose": {"Shape": "Axes", "Axes Length": 0.1},
    "MarkerArray": {"Enabled": False},  # the most expensive one
}
"""Display properties that differ from RViz's defaults, by type; `Color` is the drone's colour."""
_COLORS = ("255; 127; 14", "31; 119; 180", "44; 160; 44", "214; 39; 40", "148; 103; 189")
"""RGB of the displays of each drone; further drones start again with the first colour."""
_SIMULATOR = "crazyflow"  # node in the template


def write(
    folder: str,
    drones: Sequence[str],
    drone_model: str,
    sensors_file: str,
    namespace: str,
    fixed_frame: str,
    simulator: str,
) -> None:
    """Write `crazyflow.rviz`, and `<drone>.urdf` for each drone.

    Args:
        folder: The folder to write to.
        drones: Names of the drones.
        drone_model: Their model.
        sensors_file: The file of the parameter `sensors`, or an empty string.
        namespace: Namespace of the simulator.
        fixed_frame: The frame of the world.
        simulator: Name of the simulator's node.

    Raises:
        ValueError: The model or the sensors file is refused.
    """
    sensors = load(sensors_file, drones, drone_model)
    template = resource("rviz", "crazyflow.rviz").read_text()
    template = template.replace("Fixed Frame: map", f"Fixed Frame: {fixed_frame}")
    config = expand(template, drones, namespace, sensors, simulator)
    Path(folder, "crazyflow.rviz").write_text(config)
    for drone in drones:
        Path(folder, f"{drone}.urdf").write_text(urdf(drone_model, drone))


def expand(
    template: str,
    drones: Sequence[str],
    namespace: str = "",
    sensors: SensorFile | None = None,
    simulator: str = _SIMULATOR,
) -> str:
    """Write the configuration for the given drones.

    Args:
        template: A configuration whose display groups each show one drone and bear its name.
        drones: Names of the drones to show.
        namespace: Namespace of the simulator, where the topics of the drones are.
        sensors: Sensors to show.
        simulator: Name of the simulator's node.

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
    others = [display for display in manager["Displays"] if display not in groups]
    manager["Displays"] = _renamed(others, _SIMULATOR, simulator, root)
    if drones:  # the tools fly the first one
        manager["Tools"] = _renamed(manager["Tools"], groups[0]["Name"], drones[0], root)
    for index, drone in enumerate(drones):
        group = _renamed(groups[0], groups[0]["Name"], drone, root)
        for device in sensors.devices if sensors is not None else ():
            if sensors is not None and sensors.carries(drone, device):
                group["Displays"] += _displays(device, drone, f"{root}/{drone}/{device.name}")
        for display in group["Displays"]:
            for properties in (display, display.get("Shape")):
                if isinstance(properties, dict) and "Color" in properties:
                    properties["Color"] = _COLORS[index % len(_COLORS)]
        manager["Displays"].append(group)
    return yaml.safe_dump(config, sort_keys=False)


def _displays(device: Device[Any], drone: str, prefix: str) -> Iterator[dict[str, Any]]:
    """Yield the displays of a drone's sensor, whose topics begin with `prefix`."""
    for topic in device.topics:
        if topic.display:
            name = f"{device.name}{topic.suffix}".replace("/", " ")
            yield {
                "Class": f"rviz_default_plugins/{topic.display}",
                # A picture has its own panel, outside the drone's group.
                "Name": f"{drone} {name}" if topic.display == "Image" else name,
                "Enabled": True,
                "Topic": {
                    "Depth": 5,
                    "Durability Policy": "Volatile",
                    "History Policy": "Keep Last",
                    "Reliability Policy": "Reliable",
                    "Value": f"{prefix}{topic.suffix}",
                },
                **_PROPERTIES.get(topic.display, {}),
            }


def _renamed(node: Any, old: str, new: str, root: str) -> Any:
    """Return a copy of a YAML tree with the drone or node `old` and its topics replaced."""
    if isinstance(node, dict):
        return {key: _renamed(value, old, new, root) for key, value in node.items()}
    if isinstance(node, list):
        return [_renamed(value, old, new, root) for value in node]
    if node == old:
        return new
    if isinstance(node, str) and node.startswith(f"/{old}/"):
        return f"{root}/{new}/{node.removeprefix(f'/{old}/')}"
    return node


def main() -> None:
    """Run the program, see above."""
    try:
        write(**json.loads(sys.argv[1]))
    except (ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
