"""The drones' descriptions as xacro macros, for robots that are put together with `xacro`.

    python -m crazyflow_ros.description.xacro

writes `urdf_mjcf/<drone model>.urdf.xacro` anew, after a change of a drawing, of a drone's figures
or of its interfaces. So they have one source; `xacro` itself cannot call Python.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from crazyflow_ros.description.ros2_control import PARAMETERS, Hardware, blocks
from crazyflow_ros.description.urdf import drone, floating_joint, materials
from crazyflow_ros.dynamics import Drone
from crazyflow_ros.resources import resource

_NAMESPACE = "http://www.ros.org/wiki/xacro"
_COMMENT = (
    " Written by python -m crazyflow_ros.description.xacro from {model}.xml and drones.toml. "
    "The macro adds a drone to a robot: its links and joints, a floating joint below the link "
    "`parent` if there is one, and its ros2_control hardware (native, topic or none). "
)


def macro(drone_model: str) -> str:
    """A xacro file with the macro `<drone_model>`, whose argument `name` is that of the drone.

    Raises:
        ValueError: There is no such drone model.
    """
    ET.register_namespace("xacro", _NAMESPACE)
    robot = ET.Element("robot")
    robot.append(ET.Comment(_COMMENT.format(model=drone_model)))
    robot.extend(materials(drone_model))
    defaults = {key: value for group in PARAMETERS.values() for key, value in group.items()}
    optional = {"parent": "''", "hardware": str(Hardware.native), **defaults}
    params = " ".join(["name", *(f"{key}:={value}" for key, value in optional.items())])
    body = ET.SubElement(robot, f"{{{_NAMESPACE}}}macro", name=drone_model, params=params)
    body.extend(drone(drone_model, "${name}"))
    _add_if(body, "parent != ''", [floating_joint("${parent}", "${name}")])
    for hardware, parameters in PARAMETERS.items():
        references = {key: f"${{{key}}}" for key in parameters}
        elements = blocks(drone_model, "${name}", hardware, references)
        _add_if(body, f"hardware == '{hardware}'", elements)
    known = ", ".join(f"'{hardware}'" for hardware in Hardware)
    refusal = f"xacro.fatal('hardware: expected one of {', '.join(Hardware)}, got', hardware)"
    _add_if(body, f"hardware not in [{known}]", [_text(f"${{{refusal}}}")])
    ET.indent(robot)
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode") + "\n"


def _add_if(parent: ET.Element, condition: str, elements: Iterable[ET.Element]) -> None:
    children = list(elements)
    if children:
        ET.SubElement(parent, f"{{{_NAMESPACE}}}if", value=f"${{{condition}}}").extend(children)


def _text(text: str) -> ET.Element:
    element = ET.Element("error")
    element.text = text
    return element


def main() -> None:
    """Write the files of all drone models."""
    folder = resource("urdf_mjcf")
    for model in Drone:
        (folder / f"{model}.urdf.xacro").write_text(macro(model))


if __name__ == "__main__":
    main()
