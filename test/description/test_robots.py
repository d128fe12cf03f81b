"""Robots of a world in the description for controller managers."""

import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import pytest

from crazyflow_ros.description.robots import joined, read_robots
from crazyflow_ros.description.ros2_control import Hardware
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.resources import resource
from crazyflow_ros.scene.robot_parts import Mode, joints_of, sensors_of

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


OF_MUJOCO_ROS2_CONTROL = """<robot name="arm"><link name="world"/><link name="upperarm"/>
<joint name="joint1" type="revolute"><parent link="world"/><child link="upperarm"/></joint>
<ros2_control name="MujocoSystem" type="system"><hardware>
<plugin>mujoco_ros2_control/MujocoSystemInterface</plugin>
<param name="mujoco_model">scene.xml</param></hardware>
<joint name="joint1"><command_interface name="position"/></joint></ros2_control></robot>"""


def test_a_description_for_mujoco_ros2_control_is_taken_as_it_is(tmp_path):
    file = tmp_path / "robots.urdf"
    file.write_text(OF_MUJOCO_ROS2_CONTROL)
    drones = urdf("cf2x_L250", ["cf0"], Hardware.native, MEMORY)
    robot = ET.fromstring(joined(drones, read_robots(file, MEMORY)))
    hardware = robot.find("ros2_control[@name='MujocoSystem']/hardware")
    assert hardware.findtext("plugin") == "crazyflow_ros/CrazyflowSystem"
    assert hardware.findtext("param[@name='shared_memory']") == "mine"
    parents = {
        joint.find("child").get("link"): joint.find("parent").get("link")
        for joint in robot.iterfind("joint")
    }
    assert parents["upperarm"] == "world" and parents["world"] == "map"
    links = {link.get("name") for link in robot.iterfind("link")}
    assert links - parents.keys() == {"map"}  # one tree


def test_an_actuator_of_a_tendon_belongs_to_the_joint_of_its_name():
    """As in the gripper of mujoco_ros2_control's demos."""
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody>
    <body><joint name="left" type="slide"/><geom size="0.1"/></body>
    <body pos="1 0 0"><joint name="right" type="slide"/><geom size="0.1"/></body></worldbody>
    <tendon><fixed name="split"><joint joint="left" coef="0.5"/><joint joint="right" coef="-0.5"/>
    </fixed></tendon>
    <actuator><position tendon="split" name="left" kp="10"/></actuator></mujoco>""")
    left, right = joints_of(model)
    assert [(one.mode, one.scale) for one in left.actuators] == [(Mode.position, 1.0)]
    assert right.actuators == ()


@pytest.mark.parametrize(
    ("text", "message"), [("<robot", "is no XML: "), ("<sdf/>", "expected <robot>, got <sdf>")]
)
def test_what_is_no_urdf_is_refused(tmp_path, text, message):
    file = tmp_path / "robots.urdf"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_robots(file, {})
