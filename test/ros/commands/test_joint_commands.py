"""Robots in the world, commanded by a topic; the reference is their world in plain MuJoCo."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from ros_client import Client, SimulatorProcess, own_domain
from sensor_msgs.msg import JointState
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import SpawnEntity

from crazyflow_ros.resources import resource

DOMAIN = own_domain("test_ros_joint_commands")
TOPIC = "crazyflow/world/joint_commands"
WHEELS, ARM = ["left_wheel_joint", "right_wheel_joint"], [f"arm_joint{i}" for i in (1, 2, 3)]


@pytest.fixture(scope="module")
def arguments() -> list[str]:
    return ["drones:=[cf0]", "start_paused:=true", "scene:=robots"]


def commanded() -> np.ndarray:
    """Positions of the joints in MuJoCo after 400 ticks of 2 ms."""
    model = mujoco.MjModel.from_xml_path(str(resource("urdf_mjcf", "robots.xml")))
    model.opt.timestep = 0.002
    data = mujoco.MjData(model)
    for name, value in (
        *(("left_wheel", 3.0), ("right_wheel", 2.0)),
        *(("arm_joint1", 0.4), ("arm_joint2", 0.3), ("arm_joint3", 0.5)),
    ):
        data.actuator(name).ctrl = value
    mujoco.mj_step(model, data, 400)
    return np.array([data.joint(name).qpos[0] for name in (*WHEELS, *ARM)])


def test_joints_move_as_in_mujoco_until_a_reset(client: Client) -> None:
    nan = math.nan
    client.publish(TOPIC, JointState(name=WHEELS, velocity=[3.0, 2.0]))
    arm = JointState(name=ARM, position=[0.4, 0.3, nan], effort=[nan, nan, 0.5])
    client.publish(TOPIC, arm)
    states = client.listen(JointState, "crazyflow/world/joint_states")
    now = client.newest(states, client.advance(400))
    at = dict(zip(now.name, now.position))
    moved = [at[name] for name in (*WHEELS, *ARM)]
    assert min(np.abs(moved)) > 0.01
    np.testing.assert_allclose(moved, commanded(), atol=1e-6)
    client.reset()
    now = client.newest(states, client.advance(500))
    assert abs(dict(zip(now.name, now.velocity))["left_wheel_joint"]) < 1e-6


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (JointState(), "name has to have each joint once"),
        (JointState(name=["arm_joint1"] * 2), "name has to have each joint once"),
        (JointState(name=ARM, position=[0.0]), "position: expected as many as names, 3"),
        (JointState(name=["arm_joint9"], position=[0.0]), "did you mean 'arm_joint"),
        (JointState(name=["arm_joint3"], position=[0.0]), "arm_joint3 take effort, got position"),
        (JointState(name=["arm_joint1"], position=[1e6]), "position of arm_joint1"),
        (JointState(name=["arm_joint2"], position=[math.inf]), "position of arm_joint2"),
    ],
)
def test_other_commands_are_refused_and_change_nothing(
    client: Client, simulator: SimulatorProcess, message: JointState, why: str
) -> None:
    states = client.listen(JointState, "crazyflow/world/joint_states")
    client.reset()
    client.publish(TOPIC, message)
    simulator.wait_for(why)
    now = client.newest(states, client.advance(10))
    assert abs(now.position[now.name.index("arm_joint1")]) < 1e-3


def spawn(client: Client, name: str, text: str) -> None:
    pose = PoseStamped()
    pose.pose.position.x, pose.pose.position.z, pose.pose.orientation.w = 5.0, 1.0, 1.0
    resource = Resource(resource_string=text)
    request = {"name": name, "entity_resource": resource, "initial_pose": pose}
    assert client.call(SpawnEntity, "crazyflow/spawn_entity", **request).result.result == 1


def test_spawned_robots_obey_by_their_names(client: Client) -> None:
    spawn(
        client,
        "door",
        """<mujoco><worldbody><body><joint type="slide" axis="1 0 0" name="rail"/>
        <geom type="box" size="0.05 0.3 0.3" mass="1"/></body></worldbody>
        <actuator><position joint="rail" name="rail" kp="50" kv="15"/></actuator></mujoco>""",
    )
    client.publish(TOPIC, JointState(name=["door/rail"], position=[0.3]))
    client.advance(1500)
    states = client.listen(JointState, "crazyflow/world/joint_states")
    now = client.newest(states, client.advance(50))
    rail = now.position[now.name.index("door/rail")]
    assert rail == pytest.approx(0.3, abs=1e-3)


def test_ros2_control_of_a_spawned_robot_is_said_to_have_no_effect(
    client: Client, simulator: SimulatorProcess
) -> None:
    spawn(
        client,
        "cart",
        """<robot name="cart"><link name="box"><collision><geometry><sphere radius="0.1"/>
        </geometry></collision></link><ros2_control name="cart" type="system"/></robot>""",
    )
    simulator.wait_for("cart has <ros2_control> tags, which have no effect")
