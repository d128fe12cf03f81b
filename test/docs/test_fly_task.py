"""The program of docs/guides/policies.md leads drones through a race and a figure-eight."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import mujoco
import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3
from nav_msgs.msg import Odometry
from paths import ROOT
from ros_client import SimulatorProcess, own_domain
from scipy.spatial.transform import Rotation

from crazyflow_ros.learn.ready import READY

fly_task = import_module("07_fly_task")
DOMAIN = own_domain("test_docs_fly_task")
TIMEOUT = 1200.0  # s
SECONDS = 30.0  # of simulated time, for nearly two laps at 2 m/s


def odometry(pos: np.ndarray, vel: np.ndarray) -> Odometry:
    """A drone that is turned, with its velocity in body axes as ROS has it."""
    turn = Rotation.from_rotvec([0.3, -0.2, 1.0])
    linear, quat = turn.inv().apply(vel).tolist(), turn.as_quat().tolist()
    message = Odometry()
    message.pose.pose = Pose(
        position=Point(**dict(zip("xyz", pos.tolist()))),
        orientation=Quaternion(**dict(zip("xyzw", quat))),
    )
    message.twist.twist = Twist(linear=Vector3(**dict(zip("xyz", linear))))
    return message


def gates() -> np.ndarray:
    """Centres of the gates, (7, 3) m, from the drawing of the scene."""
    model = mujoco.MjModel.from_xml_path(str(ROOT / "urdf_mjcf" / "race_track.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return np.array([data.site(f"gate{i}_centre").xpos for i in range(7)])


def test_the_next_gate_is_the_goal_as_soon_as_the_drone_is_through() -> None:
    goals, (first, second, *_) = fly_task.Goals(READY["race"].task()), gates()
    vel = np.array([2.0, 0.0, 0.0])  # gate 0 is flown along x
    for i, x in enumerate(np.arange(-1.0, 0.5, 0.04) + 0.01):
        goal = goals(odometry(first + np.array([x, 0.1, 0.0]), vel), i / fly_task.RATE)
        expected = first if x < 0 else second
        np.testing.assert_allclose(goal[0], expected, atol=1e-5)
        assert np.linalg.norm(goal[1]) == pytest.approx(2.0) and not goal[2].any()
    assert goals.origin.tolist() == [[1.0]]


def test_a_drone_that_flies_past_a_gate_has_to_come_back() -> None:
    goals, (first, *_) = fly_task.Goals(READY["race"].task()), gates()
    for i, x in enumerate((-0.1, 0.1)):
        goal = goals(odometry(first + np.array([x, 0.6, 0.0]), np.zeros(3)), i / fly_task.RATE)
    np.testing.assert_allclose(goal[0], first, atol=1e-5)


def test_the_eight_moves_with_its_velocity_and_acceleration() -> None:
    goals = fly_task.Goals(READY["figure_eight"].task())
    here, phase = odometry(np.zeros(3), np.zeros(3)), 2 * np.pi / 6 * 0.7
    pos, vel, acc = goals(here, 0.7)
    rate = 2 * np.pi / 6
    np.testing.assert_allclose(pos, [np.sin(phase), 0.5 * np.sin(2 * phase), 1.0], atol=1e-5)
    expected = [rate * np.cos(phase), rate * np.cos(2 * phase), 0]
    np.testing.assert_allclose(vel, expected, atol=1e-5)
    expected = [-(rate**2) * np.sin(phase), -2 * rate**2 * np.sin(2 * phase), 0]
    np.testing.assert_allclose(acc, expected, atol=1e-5)


def test_from_hovering_the_eight_begins_slowly() -> None:
    goals, here, step = (
        fly_task.Goals(READY["figure_eight"].task(), ease=2.0),
        odometry(*[np.zeros(3)] * 2),
        0.01,
    )
    flown = np.array([goals(here, time) for time in np.arange(0, 3, step)])
    np.testing.assert_allclose(flown[0, :2], [[0, 0, 1], [0, 0, 0]], atol=1e-6)
    speed = np.diff(flown[:, 0], axis=0) / step
    np.testing.assert_allclose(speed, (flown[1:, 1] + flown[:-1, 1]) / 2, atol=1e-3)
    gained = np.diff(flown[:, 1], axis=0)[:-1] / step  # acceleration leaps at the end of `ease`
    mean = (flown[1:-1, 2] + flown[:-2, 2]) / 2
    np.testing.assert_allclose(np.delete(gained, 199, 0), np.delete(mean, 199, 0), atol=1e-2)
    usual = fly_task.Goals(READY["figure_eight"].task())
    np.testing.assert_allclose(flown[250], usual(here, 1.5), atol=1e-5)


@pytest.mark.soak
@pytest.mark.parametrize("task", ["race", "figure_eight"])
def test_a_trained_policy_flies_the_task_in_the_node(task: str, tmp_path: Path) -> None:
    """As a user does it: train, start the simulator, lead the drone."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(DOMAIN), "PYTHONPATH": str(ROOT)}

    def run(*words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    policy = tmp_path / f"{task}.policy"
    run("-m", "crazyflow_ros.learn", task, "--out", str(policy))
    parameters = [f"policy:={policy}"]
    if task == "race":
        parameters += ["scene:=race_track", "initial_poses:=[0.0, -3.0, 0.0, 0.0]"]
    words = [word for parameter in parameters for word in ("-p", parameter)]
    with SimulatorProcess(DOMAIN, words):
        said = run("examples/07_fly_task.py", task, "--lock-step", "--seconds", str(SECONDS))
    found = re.search(r"passed (\d+) gates" if task == "race" else r"mean ([\d.]+) m", said)
    assert found, said
    if task == "race":
        assert int(found[1]) >= 10
    else:
        assert float(found[1]) < 0.05
