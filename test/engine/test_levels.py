"""Drones commanded at a level of their own each: held, rotor velocity, attitude, body rate."""

import numpy as np
import pytest
from physics_helpers import readings

from crazyflow_ros.control import Control
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.flight import Raw
from crazyflow_ros.runtime import (
    InvalidState,
    Level,
    PhysicsThread,
    SimulationConfig,
)

T = 120.0  # s, no wait of a test is longer
MASS, WEIGHT = load_drone("cf2x_L250")["mass"], load_drone("cf2x_L250")["mass"] * 9.81
COMMANDS = {
    Level.rotor_velocity: np.array([1570.0, 1540.0, 1560.0, 1550.0]),  # rad/s
    Level.attitude: np.array([0.1, -0.05, 0.3, WEIGHT]),
    Level.body_rate: np.array([0.2, -0.1, 0.5, WEIGHT]),
}
AIR = np.array([[x, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] for x in range(4)])


def config(n=1, **changes):
    return SimulationConfig(**({"initial_poses": AIR[:n], "start_paused": True} | changes))


class Source:
    """Commands by tick, in the process."""

    name = "source"

    def __init__(self, n=1, period=5):
        self.period = period
        self.level, self.command = np.zeros(n), np.zeros((n, 4))
        self.ticks, self.shown, self.paused, self.closed = [], [], None, False

    def show(self, snapshot, mirror):
        self.shown.append((snapshot.tick, snapshot.epoch))

    def collect(self, snapshot, command, level, interrupted):
        self.ticks.append(snapshot.tick)
        command[:], level[:] = self.command, self.level
        return True

    def forget(self, drones):
        self.forgotten = drones.tolist()

    def interrupt(self):
        pass

    def set_paused(self, paused):
        self.paused = paused

    def close(self):
        self.closed = True


@pytest.fixture
def running():
    started = []

    def start(source, **changes):
        names = [f"cf{i}" for i in range(len(source.level))]
        physics = PhysicsThread(config(len(names), **changes), names, source)
        physics.start()
        started.append(physics)
        return physics

    yield start
    for physics in started:
        physics.stop()
        assert physics.failed is None, physics.failed


def fly(engine, n_ticks):
    tick, snapshots = 1, []
    for n in n_ticks:
        snapshots += engine.advance(tick, [n], 0)
        tick += n
    return snapshots


@pytest.mark.parametrize("level", COMMANDS)
def test_a_level_flies_as_the_control_mode_of_its_name(level):
    by_level = Engine(config(), ["cf0"], by_door=["cf0"])
    by_level.command[:], by_level.level[:] = COMMANDS[level], level
    control = {Level.rotor_velocity: "rotor_vel", Level.attitude: "attitude"}.get(
        level, "body_rate"
    )
    alone = Engine(config(control=control), ["cf0"])
    alone.command[:], alone.level[:] = COMMANDS[level], Level[alone.control.name]
    if alone.control is Control.rotor_vel:
        alone.command /= RPM
    for ours, theirs in zip(fly(by_level, [1, 9, 90]), fly(alone, [1, 9, 90])):
        for name in ("pos", "quat", "vel", "ang_vel", "acc", "ang_acc", "rotor_vel"):
            np.testing.assert_allclose(
                getattr(ours, name), getattr(theirs, name), rtol=1e-3, atol=2e-3, err_msg=name
            )
        assert ours.vel[0].any()


def test_drones_at_all_levels_fly_as_each_would_alone():
    levels = [Level.held, *COMMANDS]
    together = Engine(config(4), list("abcd"), by_door=list("abcd"))
    for i, level in enumerate(levels):
        together.level[i] = level
        together.command[i] = COMMANDS.get(level, 0)
    moved = fly(together, [200])[-1].pos - AIR[:, :3]
    alone = Engine(config(), ["cf0"], by_door=["cf0"])
    for i, level in enumerate(levels):
        alone.reset()
        alone.command[:], alone.level[:] = COMMANDS.get(level, 0), level
        by_itself = fly(alone, [200])[-1].pos - AIR[:1, :3]
        np.testing.assert_allclose(moved[i], by_itself[0], atol=1e-3)
        assert (moved[i] == 0).all() == (level == Level.held)


def test_a_held_drone_stays_exactly_where_it_is_and_its_accelerometer_reads_g(running):
    physics = running(Source())
    snapshot = physics.step(500).result(T)
    np.testing.assert_array_equal(snapshot.pos[0], AIR[0, :3])
    for rate in (snapshot.vel, snapshot.ang_vel, snapshot.acc, snapshot.ang_acc):
        assert not rate.any()
    force = readings(physics.mirror, "accelerometer")
    np.testing.assert_allclose(force, [[0, 0, 9.81]], atol=1e-6)


def test_holding_in_flight_stops_the_drone_and_its_rotors_keep_their_speed(running):
    source = Source()
    source.level[:], source.command[:] = Level.attitude, (0.2, 0.0, 0.0, 1.2 * WEIGHT)
    physics = running(source)
    flying = physics.step(199).result(T)
    assert np.linalg.norm(flying.vel) > 0.1
    source.level[:] = Level.held
    held = physics.step(200).result(T)
    np.testing.assert_array_equal(held.pos, flying.pos)
    np.testing.assert_array_equal(held.rotor_vel, flying.rotor_vel)
    assert not held.vel.any() and not held.ang_vel.any()


def test_levels_change_in_flight_without_a_jolt(running):
    source = Source()
    physics = running(source)
    physics.step(4).result(T)
    for level in (Level.attitude, Level.rotor_velocity, Level.body_rate, Level.attitude):
        source.level[:] = level
        hover = level == Level.rotor_velocity
        source.command[:] = [1555.0] * 4 if hover else (0.0, 0.0, 0.0, WEIGHT)
        # What an unused controller had remembered would show as a kick.
        snapshot = physics.step(100).result(T)
        assert np.abs(snapshot.ang_vel).max() < 0.5, level


def test_an_acceleration_is_flown_in_world_axes_at_any_heading(running):
    source = Source()
    source.level[:], source.command[:] = Level.acceleration, (0.0, 0.0, 2.0, 0.0)
    physics = running(source)
    physics.step(300).result(T)  # off the floor, where friction would hold it
    source.command[:] = (0.5, 0.0, 0.0, 2.0)
    assert source.level[0] == Level.acceleration  # the source's own numbers stay
    snapshot = physics.step(999).result(T)
    (vx, vy, _), yaw = snapshot.vel[0], 2 * np.arctan2(*snapshot.quat[0, 2:])
    assert vx > 0.3 and abs(vy) < 0.2 * vx
    assert yaw == pytest.approx(2.0, abs=0.1)


def test_the_source_is_asked_on_its_grid_and_shown_the_state_first(running):
    source = Source(period=5)
    physics = running(source)
    assert physics.control_period == 5
    physics.step(24).result(T)
    assert source.ticks == [5, 10, 15, 20]
    assert [tick for tick, _ in source.shown] == [1, 5, 10, 15, 20, 25]
    physics.state.reset().result(T)
    assert source.shown[-1] == (25, 1)
    assert source.paused is True
    physics.resume().result(T)
    assert source.paused is False
    physics.stop()
    assert source.closed


def test_a_drone_with_a_source_takes_no_other_commands(running):
    physics = running(Source())
    with pytest.raises(ValueError, match="door source alone"):
        physics.command("cf0", Raw([1.0, 1.0, 1.0, 1.0]))


def test_an_interrupted_source_is_asked_again(running):
    class Waiting(Source):
        def collect(self, snapshot, command, level, interrupted):
            super().collect(snapshot, command, level, interrupted)
            return not interrupted()

    source = Waiting(period=1)
    physics = running(source)
    step = physics.step(1000)
    physics.step(1).result(T)
    assert step.result(T).tick == 1001
    physics.resume().result(T)
    with pytest.raises(InvalidState, match="not paused"):
        physics.step(1).result(T)


def test_a_controller_rate_that_does_not_divide_the_physics_rate_is_refused():
    with pytest.raises(ValueError, match="attitude_freq must divide"):
        Engine(config(attitude_freq=300), ["cf0"], by_door=["cf0"])
