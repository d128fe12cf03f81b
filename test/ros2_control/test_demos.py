"""The demos' commands, flown by the real controller manager."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from real_manager import CHAIN, Manager, flight, installed
from ros_client import numbers, own_domain
from sensor_msgs.msg import MultiDOFJointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from crazyflow_ros.resources import resource

pytest.importorskip("launch", reason="launch is part of ROS 2, and not among its wheels on PyPI")
pytest.importorskip("launch_ros", reason="launch_ros is part of ROS 2, and not on PyPI")

DOMAIN = own_domain(__name__)
RATE = 100  # Hz


def test_a_trajectory_controller_flies_the_figure(tmp_path: Path) -> None:
    installed("joint_trajectory_controller", "install ros2_controllers")
    demo = runpy.run_path(str(resource("launch", "demo_1_figure.launch.py")))
    joints, turn = demo["JOINTS"], demo["TURN"]
    given = demo["trajectory"](joints, demo["figure_eight"], 2 * turn, 3.0)
    message = JointTrajectory(joint_names=joints)
    for point in given["points"]:
        message.points.append(
            JointTrajectoryPoint(positions=point["positions"], velocities=point["velocities"])
        )
        start = message.points[-1].time_from_start
        start.sec, start.nanosec = point["time_from_start"].values()
    with (
        flight(DOMAIN, **{"ros2_control.rate": RATE}) as flying,
        Manager(flying.client, tmp_path, ["cf0"], RATE) as manager,
    ):
        manager.start("joint_state_broadcaster", "cf0_velocity", "cf0_trajectory")
        flying.client.publish("/cf0_trajectory/joint_trajectory", message)
        path = flying.positions(3.0 + 2 * turn + 2.0)
    assert path[-1] == pytest.approx((0.0, 0.0, 1.0), abs=0.02)
    times = np.linspace(0, turn, 400)
    wanted = np.array([demo["figure_eight"](t) for t in times])
    away = np.linalg.norm(wanted[:, None] - path[None], axis=2).min(axis=1)
    assert away.max() < 0.08  # all of the figure; the controllers know of no accelerations


def test_two_drones_carry_a_bar(tmp_path: Path) -> None:
    drones = ("cf0", "cf1")
    given = {"scene": "carried_bar", "ros2_control.rate": RATE}
    with (
        flight(DOMAIN, drones, **given) as flying,
        Manager(flying.client, tmp_path, drones, RATE) as manager,
    ):
        chains = [f"{drone}_{name}" for drone in drones for name in CHAIN]
        manager.start("joint_state_broadcaster", *chains)
        for y, z in ((0.0, 1.0), (0.5, 1.2)):
            for i, drone in enumerate(drones):
                flying.tell((float(i), y, z), drone)
            for i, drone in enumerate(drones):
                flying.fly_to((float(i), y, z), drone)
        bar = flying.client.latest(MultiDOFJointState, "/crazyflow/world/odometry").transforms[0]
        np.testing.assert_allclose(numbers(bar.translation), (0.5, 0.5, 0.8), atol=0.03)
