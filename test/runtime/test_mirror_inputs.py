"""Control inputs through the mirror: a full copy, changed in part and applied again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import mujoco
import numpy as np
import pytest
from physics_helpers import applied_wrenches

from crazyflow_ros.control import Controller
from crazyflow_ros.flight import Pose, Raw
from crazyflow_ros.runtime import PhysicsThread, ResetScope, SimulationConfig, Snapshot, TimedWrench

T = 120.0  # s, no wait of a test is longer
NAMES = ("cf0", "cf1", "cf2")
RPM = 2 * np.pi / 60


def started(control: str) -> Iterator[PhysicsThread]:
    """Three paused drones high above the floor."""
    poses = np.zeros((3, 7))
    poses[:, 0], poses[:, 2], poses[:, 6] = (0, 2, 4), 50, 1
    config = SimulationConfig(
        real_time_factor=0.0, start_paused=True, control=control, initial_poses=poses
    )
    physics = PhysicsThread(config, NAMES)
    physics.start()
    yield physics
    physics.stop()
    assert physics.failed is None


@pytest.fixture(scope="module")
def by_rotors() -> Iterator[PhysicsThread]:
    yield from started("rotor_vel")


@pytest.fixture(scope="module")
def by_controllers() -> Iterator[PhysicsThread]:
    yield from started("state")


@pytest.fixture
def physics(by_rotors: PhysicsThread) -> Iterator[PhysicsThread]:
    yield by_rotors
    by_rotors.state.reset(ResetScope.state | ResetScope.spawned).result(T)
    by_rotors.mirror.set_reset_callback(None)


def step(physics: PhysicsThread, ticks: int) -> Snapshot:
    return physics.step(ticks).result(T)


def commanded(data: mujoco.MjData, name: str) -> np.ndarray:
    return np.array([data.actuator(f"rotor{i}:{name}").ctrl[0] for i in range(4)])


def command(data: mujoco.MjData, name: str, speeds: float | np.ndarray) -> None:
    for i, speed in enumerate(np.broadcast_to(speeds, 4)):
        data.actuator(f"rotor{i}:{name}").ctrl[0] = speed


@pytest.mark.parametrize("ticks", [0, 30])
def test_one_drone_is_commanded_beside_others(physics: PhysicsThread, ticks: int) -> None:
    """By whomever, and whether or not ticks follow between the changes."""
    mirror, data = physics.mirror, physics.mirror.copy_physics_data()
    physics.command("cf0", Raw([15000.0, 15100.0, 15200.0, 15300.0]))
    step(physics, 1)
    for name, speed in (("cf1", 1500.0), ("cf2", 1600.0)):
        mirror.copy_physics_data(data)
        command(data, name, speed)
        mirror.apply_control_data(data)
        if ticks:
            step(physics, ticks)
    mirror.copy_physics_data(data)
    raw = np.array([15000.0, 15100.0, 15200.0, 15300.0]) * RPM
    for name, expected in (("cf0", raw), ("cf1", 1500.0), ("cf2", 1600.0)):
        np.testing.assert_allclose(commanded(data, name), np.broadcast_to(expected, 4), rtol=1e-6)
    spun = step(physics, 2000).rotor_vel
    np.testing.assert_allclose(spun, [raw, [1500.0] * 4, [1600.0] * 4], rtol=2e-3)


def test_applying_a_copy_changes_no_bit(physics: PhysicsThread) -> None:
    flights = []
    for again in (False, True):
        physics.state.reset().result(T)
        physics.command("cf0", Raw([15000.0, 14000.1, 15000.7, 14321.0]))
        data = physics.mirror.copy_physics_data()
        command(data, "cf1", np.array([1234.56, 1234.57, 1300.0, 3.0]))
        data.joint("free:cf1").qfrc_applied[:] = 0.01, 0, 0.02, 1e-6, 2e-6, 3e-6
        data.body("rotor2:cf2").xfrc_applied[:] = 0, 0.001, 0, 0, 0, 1e-6
        step(physics, 3)
        physics.mirror.apply_control_data(data)
        for _ in range(20):
            now = step(physics, 5)
            if again:
                physics.mirror.apply_control_data(physics.mirror.copy_physics_data())
        flights.append(np.hstack((now.pos, now.quat, now.vel, now.ang_vel, now.rotor_vel)))
    np.testing.assert_array_equal(*flights)
    assert not flights[0][2, -4:].any()  # nobody commanded it


def test_whoever_listens_to_commands_can_repeat_the_flight(physics: PhysicsThread) -> None:
    """As recordings do."""
    heard: list[tuple[str, Raw, int]] = []
    physics.news.on_command(lambda *command: heard.append(command))
    flights, start = [], []
    for repeats in (False, True):
        physics.state.reset().result(T)
        start.append(physics.snapshot.tick)
        data = physics.mirror.copy_physics_data()
        for i in range(20):
            if not repeats:
                command(data, "cf1", 1500.0 + 7 * (i // 2) + np.arange(4))
                physics.mirror.apply_control_data(data)
            for name, setpoint, tick in heard[: 10 * repeats]:
                if tick - start[0] == physics.snapshot.tick - start[1]:
                    physics.command(name, setpoint)
            now = step(physics, 5)
        assert len(heard) == 10 * (1 + repeats) and {name for name, *_ in heard} == {"cf1"}
        flights.append(np.hstack((now.pos, now.quat, now.vel, now.ang_vel, now.rotor_vel)))
    np.testing.assert_array_equal(*flights)


def test_many_change_their_own_drone_under_the_lock(physics: PhysicsThread) -> None:
    physics.resume().result(T)

    def count(name: str) -> None:
        for _ in range(40):
            with physics.mirror.mutex:
                data = physics.mirror.copy_physics_data()
                command(data, name, commanded(data, name) + 1.0)
                physics.mirror.apply_control_data(data)

    with ThreadPoolExecutor() as pool:
        list(pool.map(count, NAMES))
    physics.pause().result(T)
    data = physics.mirror.copy_physics_data()
    for name in NAMES:
        np.testing.assert_allclose(commanded(data, name), 40.0, rtol=1e-5)


def test_loads_turn_with_the_drone_as_in_mujoco(physics: PhysicsThread) -> None:
    """And stay what they are, in the copy and in checkpoints, while others push, too."""
    mirror, seen = physics.mirror, []
    data = mirror.copy_physics_data()
    data.joint("free:cf0").qfrc_applied[:] = 0.01, 0.02, 0.3, 2e-6, -3e-6, 1e-5
    data.body("rotor1:cf1").xfrc_applied[:] = 0.004, -0.002, 0.001, 1e-6, 0, 2e-6
    data.body("drone:cf1").xfrc_applied[:] = 0, 0.1, 0.3, 0, 0, 1e-5
    applied = data.qfrc_applied.copy(), data.xfrc_applied.copy()
    mirror.apply_control_data(data)
    physics.news.on_wrench(lambda now, total: seen.append((now.quat.copy(), total.copy())))
    step(physics, 200)
    physics.state.restore(physics.state.checkpoint().result(T)).result(T)
    step(physics, 200)
    turns = [np.abs(before[0] - after[0]).max() for before, after in pairwise(seen[::100])]
    assert min(turns) > 0.05
    copied = mirror.copy_physics_data()
    for given, now in zip(applied, (copied.qfrc_applied, copied.xfrc_applied)):
        np.testing.assert_array_equal(now, given)
    for quat, total in seen[::100]:
        for name, attitude in zip(NAMES, quat):
            copied.joint(f"free:{name}").qpos[3:] = attitude[[3, 0, 1, 2]]
        expected = applied_wrenches(mirror.model, copied, NAMES)
        np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-12)
    push = physics.apply_wrench("cf2", TimedWrench((1.0, 0, 0), (0, 0, 0), 10.0))
    step(physics, 1)
    copied = mirror.copy_physics_data()
    assert not copied.body("drone:cf2").xfrc_applied.any()  # or it would be applied twice
    mirror.apply_control_data(copied)
    copied.qfrc_applied[:] = copied.xfrc_applied[:] = 0
    mirror.apply_control_data(copied)
    before = step(physics, 1).vel
    after = step(physics, 10).vel
    assert not push.done() and after[2, 0] - before[2, 0] > 0.3  # F / m * 20 ms
    np.testing.assert_allclose(after[0, :2], before[0, :2], atol=0.02)  # pushed no more


def test_a_reset_restores_captured_rotor_commands_and_no_forces(physics: PhysicsThread) -> None:
    """As MuJoCo's keyframes keep ctrl: rotors go on turning after the reset."""
    mirror = physics.mirror
    data = mirror.copy_physics_data()
    command(data, "cf1", 1700.0)
    data.body("drone:cf2").xfrc_applied[:3] = 0.1
    mirror.apply_control_data(data)
    mirror.capture_initial_state()
    for name in NAMES:
        command(data, name, 500.0)
    mirror.apply_control_data(data)
    step(physics, 50)
    try:
        mirror.reset_world_state()
        copied = mirror.copy_physics_data()
        np.testing.assert_allclose(commanded(copied, "cf1"), 1700.0, rtol=1e-6)
        assert not commanded(copied, "cf0").any() and not commanded(copied, "cf2").any()
        assert not copied.xfrc_applied.any() and not copied.qfrc_applied.any()
        np.testing.assert_allclose(step(physics, 2000).rotor_vel[1], 1700.0, rtol=2e-3)
    finally:
        command(data, "cf1", 0.0)
        physics.state.reset().result(T)
        mirror.apply_control_data(mujoco.MjData(mirror.model))
        mirror.capture_initial_state()


def test_a_reset_of_one_drone_leaves_the_inputs_of_others(physics: PhysicsThread) -> None:
    mirror = physics.mirror
    data = mirror.copy_physics_data()
    for name in NAMES:
        command(data, name, 1500.0)
        data.body(f"drone:{name}").xfrc_applied[0] = 0.01
    mirror.apply_control_data(data)
    physics.state.reset(drones=["cf1"]).result(T)
    copied = mirror.copy_physics_data()
    for name, expected in (("cf0", 1500.0), ("cf1", 0.0), ("cf2", 1500.0)):
        np.testing.assert_allclose(commanded(copied, name), expected, rtol=1e-6)
        assert copied.body(f"drone:{name}").xfrc_applied[0] == pytest.approx(expected / 150000)


def test_a_keyframe_has_rotor_commands(physics: PhysicsThread) -> None:
    """Put by itself, or by a reset, whose callback is then told that the state is there."""
    mirror, told = physics.mirror, []

    def with_key(spec: mujoco.MjSpec) -> None:
        model = spec.compile()
        data = mujoco.MjData(model)
        command(data, "cf0", 1800.0)
        data.joint("free:cf0").qpos[:3] = 0, 0, 60
        spec.add_key(name="spun", qpos=data.qpos, ctrl=data.ctrl)

    physics.world.set_scene(edit=with_key).result(T)
    mirror.set_reset_callback(told.append)
    for put in (
        lambda: mirror.apply_keyframe("spun"),
        lambda: physics.state.edit_state(
            lambda: lambda _: mirror.keyframe("spun"), reset=True, to_keyframe=True
        ).result(T),
    ):
        data = mirror.copy_physics_data()
        command(data, "cf0", 700.0)
        command(data, "cf1", 700.0)
        data.body("drone:cf1").xfrc_applied[1] = 0.1
        mirror.apply_control_data(data)
        assert put()
        copied = mirror.copy_physics_data()
        np.testing.assert_allclose(commanded(copied, "cf0"), 1800.0, rtol=1e-6)
        assert not commanded(copied, "cf1").any() and not copied.xfrc_applied.any()
        assert copied.body("drone:cf0").xpos[2] == pytest.approx(60)
        np.testing.assert_allclose(step(physics, 2000).rotor_vel[0], 1800.0, rtol=2e-3)
    mirror.reset_world_state()
    assert told == [False, True]


def test_drones_come_and_go_beside_inputs(physics: PhysicsThread) -> None:
    mirror = physics.mirror
    data = mirror.copy_physics_data()
    command(data, "cf2", 1500.0)
    data.joint("free:cf2").qfrc_applied[2] = 0.02
    data.joint("free:cf1").qfrc_applied[2] = 0.01
    mirror.apply_control_data(data)
    step(physics, 1)
    physics.world.despawn("cf1").result(T)
    physics.world.spawn("cf1", np.array([2.0, 0, 50, 0, 0, 0, 1])).result(T)
    copied = mirror.copy_physics_data()
    np.testing.assert_allclose(commanded(copied, "cf2"), 1500.0, rtol=1e-6)
    assert copied.joint("free:cf2").qfrc_applied[2] == 0.02
    assert not copied.joint("free:cf1").qfrc_applied.any()


def test_copies_have_what_controllers_command_and_cannot_change_it(
    by_controllers: PhysicsThread, caplog: pytest.LogCaptureFixture
) -> None:
    """Forces are changed beside; that rotor speeds have no effect is said once."""
    physics, mirror = by_controllers, by_controllers.mirror
    x, y, z = physics.snapshot.pos[0]
    physics.command("cf0", Pose((x, y, z), 0.0))
    hover = step(physics, 3000)
    data = mirror.copy_physics_data()
    # The rotors of a drone that hovers turn as they are commanded.
    np.testing.assert_allclose(commanded(data, "cf0"), hover.rotor_vel[0], rtol=2e-3)
    assert (commanded(data, "cf0") > 1000).all() and not commanded(data, "cf1").any()
    caplog.clear()
    caplog.set_level("INFO")
    data.body("drone:cf1").xfrc_applied[2] = 0.4
    mirror.apply_control_data(data)
    assert not caplog.records
    before = step(physics, 1).vel[1, 2]
    assert step(physics, 20).vel[1, 2] > before + 0.05
    for _ in range(2):
        data.ctrl[:] = 10.0
        mirror.apply_control_data(data)
    np.testing.assert_allclose(step(physics, 100).rotor_vel[0], hover.rotor_vel[0], rtol=2e-3)
    (record,) = caplog.records
    assert "ctrl of the mirror has no effect: the controllers" in record.getMessage()


def test_a_control_mode_without_controllers_refuses_a_change(by_rotors: PhysicsThread) -> None:
    with pytest.raises(ValueError, match="controller=indi needs control=state or attitude with"):
        by_rotors.world.set_controller("indi").result(T)
    assert by_rotors.world.controller is Controller.mellinger
