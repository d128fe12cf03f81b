"""Robots of a world in the description for controller managers."""

import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import pytest

from crazyflow_ros.description.robots import joined, read_robots
from crazyflow_ros.description.ros2_control import Hardware
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.resources import resource
from crazyflow_ros.scene.robot_parts import joints_of, sensors_of

FILE = resource("urdf_mjcf", "robots.urdf")
MEMORY = {"shared_memory": "mine"}


def test_the_urdf_names_joints_and_sensors_of_the_world():
    model = mujoco.MjModel.from_xml_path(str(resource("urdf_mjcf", "robots.xml")))
    robot = ET.parse(FILE).getroot()
    declared = [joint.get("name") for joint in robot.iterfind("ros2_control/joint")]
    assert declared == [joint.name for joint in joints_of(model)]
    there = {sensor.name.rpartition("_")[0] for sensor in sensors_of(model)}
    for sensor in robot.iterfind("ros2_control/sensor"):
        assert sensor.findtext("param[@name='mujoco_sensor_name']", sensor.get("name")) in there


def test_robots_join_the_drones_of_one_manager():
    drones = urdf("cf2x_L250", ["cf0"], Hardware.native, MEMORY)
    robot = ET.fromstring(joined(drones, read_robots(FILE, MEMORY)))
    blocks = {block.get("name"): block for block in robot.iterfind("ros2_control")}
    assert list(blocks) == ["cf0", "rover", "arm"]
    for block in blocks.values():
        assert block.findtext("hardware/param[@name='shared_memory']") == "mine"
    gains = blocks["arm"].findtext("hardware/param[@name='pids_config_file']")
    assert Path(gains) == resource("config", "arm_gains.yaml")
    links = [link.get("name") for link in robot.iterfind("link")]
    children = [child.get("link") for child in robot.iterfind("joint/child")]
    assert len(set(links)) == len(links)
    assert set(links) - set(children) == {"map"}  # one tree


@pytest.mark.parametrize(
    ("text", "message"), [("<robot", "is no XML: "), ("<sdf/>", "expected <robot>, got <sdf>")]
)
def test_what_is_no_urdf_is_refused(tmp_path, text, message):
    file = tmp_path / "robots.urdf"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_robots(file, {})
