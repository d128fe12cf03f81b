"""The viewer: what keys and mouse do, its process, and what happens without a display."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from moving_worlds import SHOWN
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, own_domain

from crazyflow_ros.drones import load_drone
from crazyflow_ros.ros.mujoco_viewer import BACKSPACE, EQUAL, MINUS, RIGHT, SPACE, ViewerControls
from crazyflow_ros.runtime import TimedWrench
from crazyflow_ros.scene import MirrorState, build_spec
from crazyflow_ros.scene.description import read_text
from crazyflow_ros.scene.mirrored_model import MirroredModel
from crazyflow_ros.scene.viewer_process import Input, ViewerScene

DOMAIN = own_domain("test_viewer")
NAMES = ("cf0", "cf1")
MASS = load_drone("cf2x_L250")["mass"]


class Physics:
    """Writes down what is asked of it."""

    def __init__(self) -> None:
        self.paused, self.factor, self.asked = False, 1.0, []  # type: tuple[bool, float, list]
        self.state = self

    def statistics(self) -> Any:
        return SimpleNamespace(requested_factor=self.factor)

    def set_factor(self, factor: float) -> None:
        self.factor = factor

    def apply_wrench(self, name: str, wrench: TimedWrench, key: Any) -> Future[None]:
        del key
        self.asked.append((name, np.asarray(wrench.force).tolist(), wrench.duration))
        return Future()

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.asked.append((name, *arguments))


@pytest.fixture
def physics() -> Physics:
    return Physics()


@pytest.fixture
def controls(physics: Physics) -> ViewerControls:
    return ViewerControls(physics, lambda: 5, physics.set_factor)


def press(controls: ViewerControls, *keys: int) -> None:
    controls.take(Input(list(keys), np.zeros((2, 6))), NAMES)


def test_keys_pause_step_and_reset(physics: Physics, controls: ViewerControls) -> None:
    press(controls, SPACE)
    physics.paused = True
    press(controls, RIGHT, BACKSPACE, SPACE, ord("Q"))
    assert physics.asked == [("pause",), ("step", 5), ("reset",), ("resume",)]


@pytest.mark.parametrize(
    ("key", "factor", "expected"),
    [
        (EQUAL, 1.0, 2.0),
        (EQUAL, 64.0, 0.0),
        (EQUAL, 0.0, 0.0),
        (MINUS, 1.0, 0.5),
        (MINUS, 0.0, 64.0),
        (MINUS, 1 / 64, 1 / 64),
    ],
)
def test_keys_change_the_speed(
    physics: Physics, controls: ViewerControls, key: int, factor: float, expected: float
) -> None:
    physics.factor = factor
    press(controls, key)
    assert physics.factor == expected


def test_drag_lasts_until_it_ends(physics: Physics, controls: ViewerControls) -> None:
    wrench = np.zeros((2, 6))
    wrench[1, 0] = 0.25
    controls.take(Input([], wrench), NAMES)
    controls.take(Input([], wrench), NAMES)
    press(controls)
    press(controls)
    assert physics.asked == [
        ("cf1", [0.25, 0, 0], np.inf),
        ("cf1", [0.25, 0, 0], np.inf),
        ("end_wrench", ("viewer", "cf1")),
    ]


def test_drag_ends_with_the_window(physics: Physics, controls: ViewerControls) -> None:
    wrench = np.ones((2, 6))
    controls.take(Input([], wrench), NAMES)
    controls.release()
    assert sorted(physics.asked[2:]) == [("end_wrench", ("viewer", name)) for name in NAMES]


@pytest.fixture(scope="module")
def scene() -> ViewerScene:
    scene = ViewerScene(build_spec("cf2x_L250", NAMES).compile(), NAMES)
    state = {name: np.zeros((2, 3)) for name in ("vel", "ang_vel", "acc", "ang_acc")}
    state |= {name: np.zeros((2, 4)) for name in ("rotor_angle", "rotor_vel")}
    pos = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    scene.set_state(MirrorState(time_ns=0, pos=pos, quat=np.eye(4)[[3, 3]], **state))
    return scene


def test_mouse_pulls_the_drone_to_where_it_drags(scene: ViewerScene) -> None:
    """With MuJoCo's spring: from the centre of mass it is force alone, in direction of the drag."""
    perturb, view = mujoco.MjvPerturb(), mujoco.MjvScene(scene.model, 1000)
    camera, option, kinds = mujoco.MjvCamera(), mujoco.MjvOption(), mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(scene.model, scene.data, option, None, camera, kinds, view)
    assert not scene.dragged(perturb).any()
    perturb.select = scene.model.body("drone:cf1").id
    perturb.active = int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
    mujoco.mjv_initPerturb(scene.model, scene.data, view, perturb)
    assert np.abs(scene.dragged(perturb)).max() < 1e-9
    perturb.refselpos = perturb.refselpos + np.array([0.3, 0.0, 0.4])
    wrench = scene.dragged(perturb)
    assert not wrench[0].any()
    force = wrench[1, :3]
    np.testing.assert_allclose(force / np.linalg.norm(force), [0.6, 0, 0.8], atol=1e-6)
    assert np.linalg.norm(force) > 9.81 * MASS
    np.testing.assert_allclose(wrench[1, 3:], 0, atol=1e-9)


@pytest.mark.skipif("DISPLAY" not in os.environ, reason="there is no display")
def test_window_opens_and_closes_with_the_simulator() -> None:
    with SimulatorProcess(DOMAIN, ["headless:=false"]) as simulator, Client(DOMAIN) as client:
        simulator.wait_for("the viewer is open")
        client.latest(Odometry, "cf0/odom")
        assert simulator.end()[0] == 0
        assert "Traceback" not in simulator.log
        assert "the viewer ended" not in simulator.log


def test_the_window_shows_bodies_that_move() -> None:
    """Also after its process has received the model, which then has lost its signature."""
    model = build_spec("cf2x_L250", NAMES, scene=read_text(SHOWN), mocap=False).compile()
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 100)
    mirrored = MirroredModel(model, NAMES)
    state = replace(mirrored.initial, bodies=mirrored.bodies(data))
    scene = ViewerScene(*pickle.loads(pickle.dumps((model, NAMES))))
    scene.set_state(pickle.loads(pickle.dumps(state)))
    mujoco.mj_kinematics(model, data)
    box = model.body("a box").id
    np.testing.assert_allclose(scene.data.xpos[box], data.xpos[box], atol=1e-12)
