"""Drones that get lost, callbacks that fail, a thread that hangs, and resets that put it right."""

import logging
import re
import threading

import numpy as np
import pytest
from physics_helpers import hover, readings, until

from crazyflow_ros.checks import throttled_logger
from crazyflow_ros.flight import Arm, Emergency, FlightConfig, Land, Pose, Trajectory, Velocity
from crazyflow_ros.runtime import (
    DroneState,
    InvalidState,
    PhysicsThread,
    ResetScope,
    SimulationConfig,
)

T = 120.0  # s, no wait of a test is longer
NAMES = ("cf0", "cf1")
FIELDS = ("pos", "quat", "vel", "ang_vel", "rotor_vel", "rotor_angle")


class Parts:
    """Parts of a simulation that can be made to fail."""

    def __init__(self):
        self.seen, self.fails, self.wrench = [], False, None
        self.at, self.go_on = 0, threading.Event()

    def see(self, snapshot):
        self.seen.append(snapshot.tick)

    def fail(self, snapshot):
        if self.fails:
            raise ZeroDivisionError("a bug")

    def hang(self, snapshot):
        if snapshot.tick == self.at:
            assert self.go_on.wait(T)


@pytest.fixture(scope="module")
def simulation():
    """One for all tests, for each compiles anew."""
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, watchdog_timeout=0.1)
    physics, parts = PhysicsThread(config, NAMES), Parts()
    for name in ("fail", "see", "hang"):
        physics.every(100, getattr(parts, name), f"{name} part")
    physics.news.on_reset(parts.fail)

    def push(snapshot):  # nobody can do this from outside: a fault of the physics, or of a part
        if parts.wrench is not None:
            physics.simulation.engine.wrench[0] = parts.wrench

    physics.news.on_change(push)
    physics.start()
    yield physics, parts
    physics.stop()
    assert physics.failed is None, physics.failed


@pytest.fixture
def parts(simulation):
    """What can fail, and does not yet."""
    parts = simulation[1]
    parts.__init__()
    return parts


@pytest.fixture
def physics(simulation, parts):
    """As at the start."""
    simulation[0].state.reset(ResetScope.all).result(T)
    return simulation[0]


def state_of(snapshot, name):
    i = snapshot.names.index(name)
    return np.hstack([getattr(snapshot, field)[i] for field in FIELDS])


@pytest.mark.parametrize("bad", [np.nan, 1e30])
def test_a_lost_drone_is_held_and_the_others_fly_on_bit_for_bit(
    physics, parts, caplog, monkeypatch, bad
):
    monkeypatch.setattr(throttled_logger, "SILENCE", 0.0)  # for the same message once more
    flights = []
    for broken in (False, True):
        parts.wrench = None
        physics.state.reset(ResetScope.all).result(T)
        hover(physics)
        before = physics.step(500).result(T)
        if broken:
            parts.wrench = bad
            physics.state.set_drone_states({"cf0": DroneState()}).result(T)
        after = physics.step(100).result(T)
        flights.append(state_of(after, "cf1"))
        if not broken:
            assert not physics.statistics().faults
            continue
        assert list(physics.statistics().faults) == ["cf0"]
        assert physics.commands.states == {"cf0": "lost", "cf1": "flying"}
        for told in (Land(), Pose((0.0, 0.0, 1.0), 0.0)):
            (refused,) = physics.fly({"cf0": told}).result(T).refused
            assert "cf0: it is lost" in refused and "reset it first" in refused
        assert physics.fly({"cf0": Emergency()}).result(T).refused == []
        assert physics.commands.states["cf0"] == "lost"  # still
        until(lambda: "cf0: lost by 1.010 s" in caplog.text, "its message")  # perhaps once more
        np.testing.assert_array_equal(after.pos[0], before.pos[0])
        np.testing.assert_array_equal(after.quat[0], before.quat[0])
        for field in ("vel", "ang_vel", "acc", "ang_acc", "rotor_vel"):
            assert not getattr(after, field)[0].any(), field
        for field in (*FIELDS, "acc", "ang_acc", "body_vel"):
            assert np.isfinite(getattr(after, field)).all(), field
        assert np.isfinite(readings(physics.mirror, "accelerometer")).all()
    np.testing.assert_array_equal(*flights)


def test_a_reset_of_one_drone_brings_it_back_and_leaves_the_others_alone(
    physics, parts, monkeypatch
):
    flights = []
    for broken in (False, True):
        events, epoch = [], physics.state.reset(ResetScope.all).result(T).epoch
        hover(physics)
        physics.step(200).result(T)
        if broken:
            parts.wrench = np.inf
            physics.state.set_drone_states({"cf0": DroneState()}).result(T)
            parts.wrench = None
            physics.step(10).result(T)
            assert list(physics.statistics().faults) == ["cf0"]
            monkeypatch.setattr(physics.news.on_reset, "callbacks", [events.append])
            physics.command("cf0", Pose((0.0, 0.0, 5.0), 0.0))  # from before the reset
            back = physics.state.reset(drones=["cf0"]).result(T)
            assert not physics.statistics().faults and "cf0" not in physics.commands.states
            assert back.epoch == epoch and events[0].drones == ("cf0",)
            assert back.pos[0, 2] < 0.02 and not back.rotor_vel[0].any()
        else:
            physics.step(10).result(T)
        rested = physics.step(100).result(T)
        assert rested.rotor_vel[0].any() != broken  # unarmed, and told nothing
        x, y, _ = physics.snapshot.pos[0]
        physics.command("cf0", Pose((x, y, 1.0), 0.0))
        flown = physics.step(1000).result(T)
        assert flown.pos[0, 2] > 0.5
        flights.append(state_of(flown, "cf1"))
        with pytest.raises(ValueError, match="there is no drone 'cf7', only cf0, cf1"):
            physics.state.reset(drones=["cf7"]).result(T)
        with pytest.raises(ValueError, match="only the state"):
            physics.state.reset(ResetScope.time, drones=["cf0"]).result(T)
    np.testing.assert_array_equal(*flights)


def test_a_checkpoint_after_the_clock_was_rewound_keeps_a_lost_drone(physics, parts):
    physics.step(500).result(T)
    parts.wrench = np.inf
    physics.state.set_drone_states({"cf0": DroneState()}).result(T)
    parts.wrench = None
    physics.step(10).result(T)
    physics.state.reset(ResetScope.time).result(T)
    physics.step(20).result(T)
    physics.state.restore(physics.state.checkpoint().result(T)).result(T)
    assert list(physics.statistics().faults) == ["cf0"]
    assert "lost by 0.002 s" in physics.statistics().faults["cf0"]


def test_the_clock_can_be_rewound_while_the_drones_fly_on(physics):
    flights = []
    # Up at first: a drone that is led sideways while its feet stand on the floor rolls about them.
    points, still = [(-0.5, -0.5, 0.5), (0.5, 0.0, 1.0)], np.zeros((2, 3))
    times = [800_000_000, 3_000_000_000]
    trajectory = Trajectory(times, points, [0.0, 0.0], still, still, 1_000_000)
    for rewind in (False, True):
        epoch = physics.state.reset(ResetScope.all).result(T).epoch
        physics.command("cf0", trajectory)
        physics.command("cf1", Velocity((0.1, 0.0, 0.3), 0.2))
        physics.step(499).result(T)  # to a whole second, for the controllers' sake
        if rewind:
            start = physics.state.reset(ResetScope.time).result(T)
            assert (start.tick, start.time_ns, start.epoch) == (1, 2_000_000, epoch + 1)
            assert physics.mirror.copy_physics_data().time == 0.002
        flights.append(physics.step(200).result(T))
    for name in NAMES:  # the controllers' ticks are others, hence not bit for bit
        np.testing.assert_allclose(*(state_of(f, name)[:10] for f in flights), atol=0.02)
    assert flights[1].tick == 201
    everything = physics.state.reset(ResetScope.time | ResetScope.state).result(T)
    assert (
        everything.tick == 1 and everything.epoch == epoch + 2 and everything.pos[:, 2].max() < 0.02
    )


def test_states_of_single_drones_are_set_at_once_or_not_at_all(physics):
    epoch = physics.snapshot.epoch
    hover(physics)
    before = physics.step(300).result(T)
    wrong = {
        "there is no drone 'cf7'": {"cf7": DroneState()},
        "pos of cf1 must be 3 finite numbers": {"cf1": DroneState(pos=(0, np.nan, 1))},
        "quat of cf1 is the zero quaternion": {"cf1": DroneState(quat=(0, 0, 0, 0))},
        "vel of cf1 must be 3": {"cf1": DroneState(vel=(0, 1))},
        "pos of cf1 must be within 10000 m, got": {"cf1": DroneState(pos=(0, 0, 1e12))},
        "vel of cf1 must be within 1000 m/s, got": {"cf1": DroneState(vel=(0, 0, -1001))},
        "rotor_vel of cf1 must be within 100000 rad/s": {"cf1": DroneState(rotor_vel=[1e300] * 4)},
        "ang_vel of cf1 must be 3 finite numbers, got x": {"cf1": DroneState(ang_vel="x")},
    }
    for message, states in wrong.items():
        good = {"cf0": DroneState(pos=(0, 0, 3))}
        for request in (physics.state.set_drone_states, lambda s: physics.state.reset(states=s)):
            with pytest.raises(ValueError, match=message):
                request(good | states).result(T)
    np.testing.assert_array_equal(state_of(physics.snapshot, "cf0"), state_of(before, "cf0"))
    assert physics.snapshot.epoch == epoch
    after = physics.state.set_drone_states(
        {"cf0": DroneState(pos=(0, 0, 3), quat=(0, 0, 2, 2), rotor_vel=[1000.0] * 4)}
    ).result(T)
    np.testing.assert_allclose(after.pos[0], (0, 0, 3))
    np.testing.assert_allclose(after.quat[0], (0, 0, 0.5**0.5, 0.5**0.5), atol=1e-6)
    np.testing.assert_allclose(after.rotor_vel[0], 1000.0, rtol=1e-6)
    np.testing.assert_array_equal(after.vel[0], before.vel[0])
    np.testing.assert_array_equal(state_of(after, "cf1"), state_of(before, "cf1"))
    assert after.tick == before.tick
    put = physics.state.reset(states={"cf1": DroneState(pos=(1, 1, 1))}).result(T)
    assert put.pos[0, 2] < 0.02 and tuple(put.pos[1]) == (1, 1, 1) and put.epoch == epoch + 1


def test_time_is_held_until_it_is_released(physics):
    step = physics.step(10_000_000)
    physics.hold("a world is loading").result(T)
    for request in (lambda: step, physics.resume, lambda: physics.step(1)):
        with pytest.raises(InvalidState, match="a world is loading"):
            request().result(T)
    physics.release().result(T)
    physics.step(1).result(T)


def test_callbacks_that_fail_are_told_and_time_runs_on(physics, parts, caplog):
    parts.fails = True
    step = physics.step(50, parts.fail)
    assert step.result(T).tick == 51 and len(set(parts.seen)) == 1 + 11
    failures = physics.statistics().failures
    assert failures["fail part"].count == 11 and "a bug" in failures["fail part"].error
    assert failures["progress of a step"].count == 11
    physics.state.reset().result(T)
    assert physics.statistics().failures["reset callback"].count == 1
    said = [record for record in caplog.records if record.getMessage().startswith("fail part")]
    assert len(said) == 1 and said[0].levelno == logging.ERROR  # not eleven


def test_a_thread_that_hangs_is_told_with_what_it_hangs_in(physics, parts, caplog):
    parts.at = 10
    step = physics.step(20)
    try:
        until(lambda: physics.statistics().stalled == "hang part", "the watchdog")
        said = "no progress for 0.1 s, hangs in: hang part"
        until(lambda: said in caplog.text, "its message")
    finally:
        parts.go_on.set()
    step.result(T)
    until(lambda: not physics.statistics().stalled, "the watchdog")  # nor while it is paused


class Lines:
    """A log."""

    def __init__(self):
        self.texts = []
        self.info = self.warning = self.error = self.texts.append

    def about(self, what):
        return [text for text in self.texts if text.startswith(what)]


@pytest.mark.parametrize("order", [Emergency(), Arm(False)])
def test_a_stream_that_a_drone_ignores_is_logged_once_and_counted(order):
    """A locked drone and one that is not armed, of which a node streams velocities and poses."""
    log = Lines()
    auto_arm = FlightConfig(auto_arm=isinstance(order, Emergency))
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, flight=auto_arm)
    physics = PhysicsThread(config, NAMES, logger=log)
    physics.start()
    try:
        physics.fly({"cf0": order}).result(T)
        for i in range(50):
            physics.command("cf0", Velocity((0.01 * i, 0.0, 0.0), 0.0))
            physics.step(5).result(T)
            physics.command("cf0", Pose((0.0, 0.01 * i, 1.0), 0.0))
            physics.step(5).result(T)
        assert 2 <= len(log.about("cf0 ignores")) < 20  # a busy machine may take some periods
        physics.fly({"cf1": order}).result(T)
        physics.command("cf1", Velocity((0.0, 0.0, 0.3), 0.0))
        physics.step(5).result(T)
        assert len(log.about("cf1 ignores")) == 1  # other drones are heard
    finally:
        physics.stop()
    for what in ("velocity", "pose"):
        said = [text for text in log.about("cf0 ignores") if what in text]
        more = [int(found[1]) for text in said if (found := re.search(r"\((\d+) more", text))]
        # None is lost; one that follows a pause of the machine is in the same line as the number.
        assert 45 <= len(said) - len(more) + sum(more) <= 50
