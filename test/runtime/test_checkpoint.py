"""Checkpoints, and that the same commands at the same ticks give the same bits at any speed."""

from dataclasses import fields

import numpy as np
import pytest

from crazyflow_ros.flight import Pose, Trajectory, Velocity
from crazyflow_ros.runtime import (
    Checkpoint,
    DroneState,
    PhysicsThread,
    ResetScope,
    SimulationConfig,
    StepAborted,
    TimedWrench,
)

T = 120.0  # s, no wait of a test is longer
NAMES = ("cf0", "cf1", "cf2")
TRAJECTORY = Trajectory(
    [500_000_000, 2_000_000_000],
    [(0.0, 0.2, 1.0), (0.5, 0.0, 1.0)],
    [0.0, 3.5],
    np.zeros((2, 3)),
    np.zeros((2, 3)),
)


@pytest.fixture(scope="module")
def started():
    physics = PhysicsThread(SimulationConfig(real_time_factor=0.0, start_paused=True), NAMES)
    physics.start()
    yield physics
    physics.stop()
    assert physics.failed is None, physics.failed


@pytest.fixture
def physics(started):
    started.pause().result(T)
    started.state.reset(ResetScope.all).result(T)
    return started


def numbers(snapshot):
    arrays = [getattr(snapshot, field.name) for field in fields(snapshot)]
    return np.column_stack([array for array in arrays if isinstance(array, np.ndarray)])


def fly(physics):
    """Something of everything, in the middle of it."""
    for name, setpoint in zip(
        NAMES, (Pose((0.0, 0.0, 1.0), 0.0), Velocity((0.1, 0.2, 0.3), 0.4), TRAJECTORY)
    ):
        physics.command(name, setpoint)
    physics.apply_wrench("cf0", TimedWrench((0.01, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0, ramp_down=0.5))
    physics.state.set_drone_states({"cf1": DroneState(pos=(1.0, 1.0, 1.0))}).result(T)
    physics.step(333).result(T)
    physics.command("cf0", Pose((0.3, 0.0, 1.2), 1.0))  # posted, and not in force yet


def test_a_flight_goes_on_from_a_file_bit_for_bit(physics, tmp_path):
    fly(physics)
    checkpoint = physics.state.checkpoint().result(T)
    path = tmp_path / "flight"
    checkpoint.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["flight"]
    before, after = physics.snapshot, physics.step(700).result(T)
    for _ in range(2):
        physics.state.reset(ResetScope.all).result(T)
        physics.command("cf2", Pose((0.0, 0.0, 3.0), 0.0))
        physics.step(40).result(T)
        back = physics.state.restore(Checkpoint.load(path)).result(T)
        assert (back.tick, back.epoch, back.time_ns) == (before.tick, before.epoch, before.time_ns)
        for field in ("pos", "quat", "vel", "ang_vel", "rotor_vel", "rotor_angle"):
            np.testing.assert_array_equal(getattr(back, field), getattr(before, field))
        assert physics.mirror.copy_physics_data().time == before.time_ns / 1e9
        np.testing.assert_array_equal(numbers(physics.step(700).result(T)), numbers(after))


def test_another_process_goes_on_from_it_too(physics, tmp_path):
    """With the gains that the drones have."""
    gains = {"state.kp": [0.8, 0.5, 1.0], "state.mass": [0.05]}
    physics.firmware.tune("cf0", "mellinger", gains).result(T)
    fly(physics)
    physics.state.reset(drones=["cf1"]).result(T)
    lives = physics.lives.current
    assert lives["cf1"].tick == 334 > lives["cf0"].tick == 1
    assert lives["cf1"].resets == lives["cf0"].resets + 1
    physics.state.checkpoint().result(T).save(tmp_path / "flight")
    after = physics.step(200).result(T)
    other = PhysicsThread(SimulationConfig(start_paused=True, max_drones=3), NAMES)
    other.every(100, lambda snapshot: None, "event")
    other.start()
    try:
        other.state.restore(Checkpoint.load(tmp_path / "flight")).result(T)
        assert other.lives.current == lives
        np.testing.assert_array_equal(numbers(other.step(200).result(T)), numbers(after))
    finally:
        other.stop()


def test_a_checkpoint_brings_back_the_gains_that_flew(physics):
    """Gains of the controller that flies and of others, also where there were none."""
    fly(physics)
    checkpoint, after = physics.state.checkpoint().result(T), physics.step(200).result(T)
    assert checkpoint.about["gains"].get("cf1") is None
    physics.firmware.tune("cf1", "mellinger", {"attitude.kR": [30_000.0] * 3}).result(T)
    physics.firmware.tune("cf1", "pid", {"state.kd": [0.1] * 3}).result(T)
    tuned = physics.state.checkpoint().result(T)
    assert tuned.about["gains"]["cf1"]["pid"] == {"state.kd": [0.1] * 3}
    physics.state.restore(checkpoint).result(T)
    np.testing.assert_array_equal(numbers(physics.step(200).result(T)), numbers(after))
    assert "cf1" not in physics.state.checkpoint().result(T).about["gains"]
    old = Checkpoint(checkpoint.arrays, {k: v for k, v in checkpoint.about.items() if k != "gains"})
    physics.state.restore(tuned).result(T)
    physics.state.restore(old).result(T)
    assert physics.state.checkpoint().result(T).about["gains"] == {}


def test_what_is_no_checkpoint_of_these_drones_is_refused(physics, tmp_path):
    good = physics.state.checkpoint().result(T)
    text, archive = tmp_path / "text", tmp_path / "archive"
    text.write_text("no archive")
    np.savez(archive.open("wb"), pos=np.zeros(3))
    for path in (text, archive, tmp_path / "nothing", tmp_path):
        with pytest.raises(ValueError, match=f"{path.name} is not a checkpoint that can be read"):
            Checkpoint.load(path)
    np.savez(archive.open("wb"), about=np.array('{"format": "something else"}'))
    with pytest.raises(ValueError, match=r"archive .* is not a crazyflow_ros checkpoint"):
        Checkpoint.load(archive)
    config = good.about["config"]
    for changes, message in (
        ({"names": ["cf0"]}, "of the drones cf0, here are cf0, cf1, cf2"),
        ({"config": config | {"freq": 250}}, "has freq=250, this simulation has 500"),
        ({"config": config | {"drone_model": "x"}}, "drone_model=x, this simulation has cf2x_L250"),
    ):
        with pytest.raises(ValueError, match=message):
            physics.state.restore(Checkpoint(good.arrays, good.about | changes)).result(T)
    shorter = good.arrays | {"rotor_angle": good.arrays["rotor_angle"][:1]}
    with pytest.raises(ValueError, match=r"wrote the checkpoint, .*: rotor_angle differs"):
        physics.state.restore(Checkpoint(shorter, good.about)).result(T)
    with pytest.raises(OSError, match="No such file"):
        good.save(tmp_path / "nowhere" / "flight")
    step = physics.step(10_000_000)
    physics.state.restore(good).result(T)
    with pytest.raises(StepAborted, match="the simulation was restored"):
        step.result(T)
