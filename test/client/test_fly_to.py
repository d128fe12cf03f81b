"""The position controller in Python: its law, with the physics in a loop, and its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3
from rclpy.parameter import Parameter

from crazyflow_ros.client.fly_to import FlyTo, command
from crazyflow_ros.control import Control
from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene import frames
from crazyflow_ros.sim import Sim

MODEL = "cf2x_L250"


def test_flies_to_its_goal_and_turns() -> None:
    sim, mass = Sim(drone=MODEL, control=Control.attitude), load_drone(MODEL)["mass"]
    goal, yaw = np.array([0.5, -0.3, 1.0]), 1.0
    for _ in range(500):  # at 100 Hz
        states = sim.data.states
        pos, quat, vel, rates = (
            np.asarray(field[0, 0], float)
            for field in (states.pos, states.quat, states.vel, states.ang_vel)
        )
        pose = Pose(position=Point(**vector(pos)), orientation=Quaternion(**vector(quat)))
        twist = Twist(
            linear=Vector3(**vector(frames.world_to_body(quat, vel))),
            angular=Vector3(**vector(rates)),
        )
        thrust, *angles = command(pose, twist, goal, yaw, mass)
        sim.attitude_control(np.array([[[*angles, thrust]]]))
        sim.step(sim.freq // 100)
    np.testing.assert_allclose(sim.data.states.pos[0, 0], goal, atol=0.01)
    assert frames.yaw(np.asarray(sim.data.states.quat[0, 0])) == pytest.approx(yaw, abs=0.01)


def vector(values: np.ndarray) -> dict[str, float]:
    return dict(zip("xyzw", values.tolist()))


@pytest.fixture
def node() -> Iterator[FlyTo]:
    rclpy.init(args=["--ros-args", "-p", "position:=[1, 0, 2]", "-p", "drone:=cf7"])
    node = FlyTo()
    yield node
    node.destroy_node()
    rclpy.shutdown()


def test_goals_are_parameters(node: FlyTo) -> None:
    topics = {name for name, _ in node.get_topic_names_and_types()}
    assert {"/cf7/pose", "/cf7/odom", "/cf7_attitude/commands"} <= topics
    result = node.set_parameters([Parameter("position", value=[0.5, 0.5, 1.0])])[0]
    assert result.successful
    for name, value in (("position", [1.0, 2.0]), ("position", "up"), ("yaw", math.inf)):
        result = node.set_parameters([Parameter(name, value=value)])[0]
        assert not result.successful
        assert f"{name}: expected" in result.reason and repr(value)[:3] in result.reason
    assert list(node.get_parameter("position").value) == [0.5, 0.5, 1.0]
