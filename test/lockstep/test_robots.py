"""Joints of robots in the world behind the shared memory, with a controller in Python."""

import logging
import os
import time
from contextlib import contextmanager
from itertools import count

import mujoco
import numpy as np
import pytest
from python_controller import PythonController

from crazyflow_ros.lockstep import layout
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.lockstep.robots import parts_of
from crazyflow_ros.resources import resource
from crazyflow_ros.runtime import Level, PhysicsThread, SimulationConfig
from crazyflow_ros.scene.robot_parts import Mode

PERIOD = 5  # ticks
NUMBERS = count()
T = 300.0  # s, no wait of a test is longer; compiling is among them
WORLD = resource("urdf_mjcf", "robots.xml")
AWAY = np.array([(20.0, 20.0, 0.05, 0.0, 0.0, 0.0, 1.0)])
WHEELS = ("left_wheel_joint", "right_wheel_joint")
ARM = ("arm_joint1", "arm_joint2", "arm_joint3")
HELD = (Level.held, (0.0,) * 4)


def velocity(x):
    return Mode.velocity, (0.0, x, 0.0, 0.0)


def position(x):
    return Mode.position, (x, 0.0, 0.0, 0.0)


def effort(x):
    return Mode.effort, (0.0, 0.0, x, 0.0)


@contextmanager
def running(rate=100, before_tick=None, **options):
    """A paused simulator of the world with one drone far away."""
    name = f"test.robots.{os.getpid()}.{next(NUMBERS)}"
    model = mujoco.MjModel.from_xml_path(str(WORLD))
    given = {"lock_step": True, "timeout": T, "logger": logging.getLogger("link"), **options}
    link = SharedMemoryLink(
        name, ["cf0"], drone_model="cf2x_L250", freq=500, rate=rate, parts=parts_of(model), **given
    )
    config = SimulationConfig(
        real_time_factor=0.0, start_paused=True, scene=str(WORLD), initial_poses=AWAY
    )
    physics = PhysicsThread(config, ("cf0",), link)
    if before_tick is not None:
        physics.world.before_tick(before_tick, "test")
    physics.start()
    try:
        yield physics, link, name
    finally:
        physics.stop()
    assert physics.failed is None, physics.failed


@pytest.fixture(scope="module")
def simulator():
    with running() as started:
        yield started


@pytest.fixture
def controller(simulator):
    """A controller of the drone and all joints of a world that was just reset."""
    physics, _, name = simulator
    controller = PythonController(name, "cf0", *WHEELS, *ARM)
    # To a control tick, with another command in each mode.
    commands = velocity(1.0), velocity(1.0), position(0.1), position(0.1), effort(0.1)
    answered(physics, controller, PERIOD - physics.snapshot.tick % PERIOD, *commands)
    physics.state.reset().result(T)
    yield controller
    controller.close()


def answered(physics, controller, n, *commands):
    """Take `n` steps under these commands, which do not answer the state after them."""
    end = physics.snapshot.tick + n
    steps = physics.step(n)
    while not steps.done():
        stamp = controller.stamp
        if stamp[0] < end:
            controller.post(HELD, *commands, stamp=stamp)
    return steps.result(T)


def plain():
    """The world without drones in MuJoCo, with the physics' step."""
    model = mujoco.MjModel.from_xml_path(str(WORLD))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def test_parts_are_those_of_the_world(controller):
    model, _ = plain()
    assert [part.name for part in controller.parts[:5]] == [*WHEELS, *ARM]
    assert {part.name for part in controller.parts[5:]} == {
        model.sensor(i).name for i in range(model.nsensor)
    }
    modes = [Mode.velocity, Mode.velocity, Mode.position, Mode.position, Mode.effort]
    assert [part.modes for part in controller.parts[:5]] == modes


def test_states_and_commands_are_those_of_plain_mujoco(simulator, controller):
    physics, *_ = simulator
    model, data = plain()
    commands = velocity(4.0), velocity(6.0), position(0.5), position(-0.3), effort(0.2)
    ctrl = 4.0, 6.0, 0.5, -0.3, 0.2
    for _ in range(20):
        answered(physics, controller, PERIOD, *commands)
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data, PERIOD)
        for joint in (*WHEELS, *ARM):
            now = controller.value(joint)
            expected = data.joint(joint).qpos[0], data.joint(joint).qvel[0]
            np.testing.assert_allclose(now[:2], expected, atol=1e-6)
            assert now[2] == pytest.approx(data.joint(joint).qfrc_actuator[0], abs=1e-5)
        for name in ("rover_imu_accel", "arm_wrist_force", "arm_wrist_torque"):
            np.testing.assert_allclose(controller.value(name), data.sensor(name).data, atol=1e-3)
        mujoco.mj_step1(model, data)
        for name in ("rover_imu_quat", "rover_imu_gyro", "arm_tip_pos"):
            np.testing.assert_allclose(controller.value(name), data.sensor(name).data, atol=1e-6)


def test_a_command_acts_from_its_tick_on(simulator, controller):
    physics, link, _ = simulator
    answered(physics, controller, PERIOD, *[velocity(0.0)] * 2, *[position(0.0)] * 2, effort(0.0))
    assert link.robots.commanded == {*WHEELS, *ARM}
    before = [controller.value(name)[1] for name in WHEELS]
    steps = physics.step(1)  # which waits
    while not steps.done():
        controller.post(HELD, *[velocity(5.0)] * 2, *[position(0.0)] * 2, effort(0.0))
    after = physics.mirror.copy_physics_data()
    for name, speed in zip(WHEELS, before):
        assert after.joint(name).qvel[0] > speed + 1.0
    assert steps.result(T).tick % PERIOD == 1


def test_joints_without_a_controller_hold_positions_and_rest(simulator, controller):
    physics, *_ = simulator
    commands = velocity(5.0), velocity(5.0), position(0.4), position(0.2), effort(0.0)
    answered(physics, controller, 60 * PERIOD, *commands)
    assert controller.value("left_wheel_joint")[1] > 4.0
    controller.set_active(False)
    physics.step(400).result(T)
    now = physics.mirror.copy_physics_data()
    assert abs(now.joint("left_wheel_joint").qvel[0]) < 0.05
    assert now.joint("arm_joint1").qpos[0] == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    "command", [velocity(np.nan), velocity(1e9), effort(1.0), (2**40, (0.0,) * 4)]
)
def test_a_command_that_is_not_possible_is_refused(simulator, controller, caplog, command):
    physics, link, _ = simulator
    rest = velocity(0.0), position(0.0), position(0.0), effort(0.0)
    before, deadline = link.status().refused, time.monotonic() + T
    with caplog.at_level("WARNING"):
        while "left_wheel_joint: command" not in caplog.text:  # at most once a second
            assert time.monotonic() < deadline
            answered(physics, controller, PERIOD, command, *rest)
            time.sleep(0.01)
    assert link.status().refused > before
    assert "expected velocity within 100000" in caplog.text
    assert np.isfinite(controller.value("left_wheel_joint")).all()


def test_a_reset_puts_joints_back_and_ends_their_commands(simulator, controller):
    physics, *_ = simulator
    fresh = [controller.value(name) for name in (*WHEELS, *ARM)]
    commands = velocity(5.0), velocity(-5.0), position(0.4), position(0.2), effort(0.3)
    answered(physics, controller, 20 * PERIOD, *commands)
    physics.state.reset().result(T)
    again = [controller.value(name) for name in (*WHEELS, *ARM)]
    np.testing.assert_allclose(again, fresh, atol=1e-9)
    data = physics.simulation.engine.bodies.data
    assert not data.ctrl[:5].any() and not data.qfrc_applied[-5:].any()


def driven(n):
    """Bits of the world after some control periods in which all parts are commanded by states."""
    with running() as (physics, _, name):
        controller = PythonController(name, "cf0", *WHEELS, *ARM)
        answered(physics, controller, PERIOD - physics.snapshot.tick, *[(8, (0.0,) * 4)] * 5)
        bits = b""
        for k in range(n):
            angle, rate, _ = controller.value("arm_joint3")
            steer = 4.0 + controller.value("rover_imu_gyro")[2]
            torque = 3.0 * (0.5 * np.sin(0.1 * k) - angle) - 0.5 * rate
            commands = velocity(steer), velocity(5.0), position(0.01 * k), position(-0.01 * k)
            answered(physics, controller, PERIOD, *commands, effort(torque))
            bits += b"".join(controller.value(part.name).tobytes() for part in controller.parts)
        controller.close()
    return bits


def test_sessions_repeat_to_the_bit():
    assert driven(40) == driven(40)


def test_users_are_called_before_each_tick_and_may_push():
    calls = []

    def lift(model, data):
        calls.append(data.time)
        data.xfrc_applied[model.body("rover").id, 2] = 30.0  # N

    with running(lock_step=False, before_tick=lift) as (physics, *_):
        physics.step(100).result(T)
        assert len(calls) == 100
        assert physics.mirror.copy_physics_data().body("rover").xpos[2] > 0.08


def test_a_memory_without_robots_is_as_before():
    assert layout.layout_hash() != layout.layout_hash(robots=True)
    assert layout.segment(2).names == ("header", "drones", "slots", "states")
    assert layout.segment(2).itemsize == 960 + 2 * (64 + 448) + 2 * (64 + 2 * 512)
