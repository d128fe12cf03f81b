"""The descriptions that users include with xacro, against those that Python makes."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from crazyflow_ros.description.ros2_control import PARAMETERS, Hardware
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.description.xacro import macro
from crazyflow_ros.drones import DEFAULT_DRONE, Drone
from crazyflow_ros.resources import resource

MODELS = list(Drone)


def flat(element: ET.Element, path: str = "") -> Iterator[tuple[str, dict[str, str], str]]:
    """All elements in order: path, attributes, text."""
    path = f"{path}/{element.tag}"
    yield path, dict(element.attrib), (element.text or "").strip()
    for child in element:
        yield from flat(child, path)


@pytest.mark.parametrize("model", MODELS)
def test_macros_are_as_the_figures_are_now(model: str) -> None:
    text = resource("urdf_mjcf", f"{model}.urdf.xacro").read_text()
    assert text == macro(model), "run python -m crazyflow_ros.description.xacro"


@pytest.mark.parametrize("hardware", list(Hardware))
@pytest.mark.parametrize("model", MODELS)
def test_xacro_and_python_make_the_same_robot(model: str, hardware: Hardware) -> None:
    xacro = pytest.importorskip("xacro", reason="xacro is not installed")
    parameters = {key: f"other_{key}" for key in PARAMETERS[hardware]}
    mappings = {"drones": "a b c", "model": model, "hardware": str(hardware), **parameters}
    document = xacro.process_file(
        str(resource("urdf_mjcf", "crazyflow.urdf.xacro")), mappings=mappings
    )
    ours = ET.fromstring(urdf(model, ["a", "b", "c"], hardware, parameters))
    assert list(flat(ET.fromstring(document.toxml()))) == list(flat(ours))


def test_without_arguments_it_is_the_default_drone() -> None:
    xacro = pytest.importorskip("xacro", reason="xacro is not installed")
    document = xacro.process_file(str(resource("urdf_mjcf", "crazyflow.urdf.xacro")))
    ours = ET.fromstring(urdf(DEFAULT_DRONE, ["cf0"], Hardware.native))
    assert list(flat(ET.fromstring(document.toxml()))) == list(flat(ours))


def test_unknown_hardware_is_refused_by_both() -> None:
    with pytest.raises(ValueError, match="no hardware 'radio', only native, topic, none"):
        urdf("cf2x_L250", "cf0", "radio")
    with pytest.raises(ValueError, match="topic has no parameter shared_memory; it has joint_"):
        urdf("cf2x_L250", "cf0", "topic", {"shared_memory": "x"})
    xacro = pytest.importorskip("xacro", reason="xacro is not installed")
    with pytest.raises(xacro.XacroException, match="one of native, topic, none, got radio"):
        xacro.process_file(
            str(resource("urdf_mjcf", "crazyflow.urdf.xacro")), mappings={"hardware": "radio"}
        )


def test_a_robot_may_have_drones_beside_its_own_parts(tmp_path: Path) -> None:
    xacro = pytest.importorskip("xacro", reason="xacro is not installed")
    file = tmp_path / "robot.urdf.xacro"
    file.write_text(f"""
        <robot name="carrier" xmlns:xacro="http://www.ros.org/wiki/xacro">
          <xacro:include filename="{resource("urdf_mjcf", "cf2x_L250.urdf.xacro")}"/>
          <link name="deck"/>
          <xacro:cf2x_L250 name="left" parent="deck"/>
          <xacro:cf2x_L250 name="right" hardware="topic"/>
        </robot>""")
    robot = ET.fromstring(xacro.process_file(str(file)).toxml())
    floating = robot.findall("joint[@type='floating']")
    assert [joint.find("child").get("link") for joint in floating] == ["left/base_link"]
    assert [block.get("name") for block in robot.findall("ros2_control")] == [
        "left",
        "right",
        "right_sensors",
    ]
