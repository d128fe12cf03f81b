"""The drones' descriptions as xacro macros, for robots that are assembled with `xacro`.

    python -m crazyflow_ros.description.xacro
    python -m crazyflow_ros.description.xacro path/of/drone

The first command writes the files of all drones of the package, `urdf_mjcf/<drone>.urdf.xacro`, the
second one `<drone>.urdf.xacro` in the working folder. `xacro` cannot call Python: run this after
changing a drawing or a drone's figures. `urdf_mjcf/drone.urdf.xacro` has the macros that all
drones share.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from crazyflow_ros.description.ros2_control import PARAMETERS, Hardware, most_commanded
from crazyflow_ros.description.urdf import drone, materials
from crazyflow_ros.drones import Drone, model_name, resolve, rotors_of
from crazyflow_ros.resources import resource

_NAMESPACE = "http://www.ros.org/wiki/xacro"
_SHARED = "drone.urdf.xacro"
_COMMENT = (
    " Written by python -m crazyflow_ros.description.xacro from the drone's figures and drawing. "
    "The macro adds a drone to a robot: its links and joints, a floating joint below the link "
    "`parent` if there is one, and its ros2_control hardware (native, topic or none). "
)


def macro(drone_model: str, shared: str = _SHARED) -> str:
    """Return a xacro file with the macro `<drone_model>`; its argument `name` names the drone.

    Args:
        drone_model: Name of the drone model, or path of a drone's folder.
        shared: The file with the macros that all drones share, relative to this file.

    Raises:
        ValueError: There is no such drone model.
    """
    ET.register_namespace("xacro", _NAMESPACE)
    robot, most = ET.Element("robot"), most_commanded(drone_model)
    robot.append(ET.Comment(_COMMENT))
    robot.append(_call("include", filename=shared))
    robot.extend(_short(material) for material in materials(drone_model))
    defaults = {key: value for group in PARAMETERS.values() for key, value in group.items()}
    optional = {"parent": "''", "hardware": str(Hardware.native), **defaults}
    params = " ".join(["name", *(f"{key}:={value}" for key, value in optional.items())])
    body = _call("macro", name=model_name(drone_model), params=params)
    robot.append(body)
    body.extend(_short(element) for element in drone(drone_model, "${name}"))
    body.append(
        _call(
            "drone_hardware",
            name="${name}",
            parent="${parent}",
            hardware="${hardware}",
            rotors=str(len(rotors_of(drone_model))),
            speed=most["velocity"],
            thrust=most["thrust"],
            parameters=f"${{dict({', '.join(f'{key}={key}' for key in defaults)})}}",
        )
    )
    ET.indent(robot)
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode") + "\n"


def _call(macro: str, **arguments: str) -> ET.Element:
    return ET.Element(f"{{{_NAMESPACE}}}{macro}", arguments)


def _short(element: ET.Element) -> ET.Element:
    """Return an element of a robot, written with the shared macros."""
    parts = {part.tag: part for part in element}
    match element.tag:
        case "material":
            return _call("drone_material", **element.attrib, **parts["color"].attrib)
        case "link":
            link = ET.Element("link", element.attrib)
            link.extend(_short(child) for child in element)
            return link
        case "inertial":
            mass = parts["mass"].get("value", "")
            inertia = parts["inertia"].attrib
            return _call("drone_inertial", **parts["origin"].attrib, mass=mass, **inertia)
        case "joint":
            ends = {end: parts[end].get("link", "") for end in ("parent", "child")}
            turning = {}
            if "axis" in parts:
                limit = parts["limit"]
                turning = {"axis": parts["axis"].get("xyz", ""), "speed": limit.get("velocity", "")}
                turning["torque"] = limit.get("effort", "")
            return _call(
                "drone_joint", **element.attrib, **ends, **parts["origin"].attrib, **turning
            )
        case _:  # visual or collision
            (shape,) = parts["geometry"]
            colour = {"material": parts["material"].get("name", "")} if "material" in parts else {}
            return _call(f"drone_{shape.tag}", **shape.attrib, **parts["origin"].attrib, **colour)


def main(words: Sequence[str]) -> None:
    """Write the files of all drone models, or of those in the folders given."""
    folder = resource("urdf_mjcf")
    for model in words or list(Drone):
        text = macro(resolve(model), str(folder / _SHARED)) if words else macro(model)
        where = Path() if words else folder
        (where / f"{model_name(resolve(model))}.urdf.xacro").write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
