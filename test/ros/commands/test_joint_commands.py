"""Robots in the world, commanded by a topic; the reference is their world in plain MuJoCo."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from ros_client import Client, SimulatorProcess, own_domain
from sensor_msgs.msg import JointState

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
