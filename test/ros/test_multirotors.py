"""A hexacopter in the node: its topics, its description, and that it flies."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
from geometry_msgs.msg import PoseStamped
from multirotors import HEXA
from nav_msgs.msg import Odometry
from ros_client import LATCHED, Client, SimulatorProcess, own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM

DOMAIN = own_domain(__name__)
ARGUMENTS = [f"drone_model:={HEXA}", "drones:=[cf0]", "real_time_factor:=0.0"]
ROTORS = [f"cf0_rotor{i}" for i in range(6)]


def test_it_hovers_where_a_pose_says(client: Client) -> None:
    publisher = client.publisher(PoseStamped, "cf0/cmd_pose")
    pose = PoseStamped()
    pose.header.frame_id = "map"
    pose.pose.position.z, pose.pose.orientation.w = 1.0, 1.0
    odometry = client.collect(Odometry, "cf0/odom")

    def hovers() -> bool:
        publisher.publish(pose)
        if len(odometry) < 10:
            return False
        now = odometry[-1]
        still = abs(now.twist.twist.linear.z) < 0.01
        return still and abs(now.pose.pose.position.z - 1.0) < 0.03

    client.until(hovers, "hover at 1 m")
    states = client.latest(JointState, "cf0/joint_states")
    assert list(states.name) == ROTORS
    hover = rotors_of(HEXA).hover_speeds(load_drone(HEXA)["mass"] * 9.81) * RPM
    np.testing.assert_allclose(states.velocity, hover, rtol=0.02)
    assert list(client.latest(JointState, "crazyflow/joint_states").name) == ROTORS


def test_its_description_has_six_rotors(client: Client, simulator: SimulatorProcess) -> None:
    messages = client.collect(String, "cf0/robot_description", LATCHED)
    text = client.until(lambda: messages and messages[0].data, "robot description")
    joints = ET.fromstring(text).findall("joint[@type='continuous']")
    assert [joint.get("name") for joint in joints] == ROTORS
    assert "Traceback" not in simulator.log
