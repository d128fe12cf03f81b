"""The same script of commands by tick leads to the same bits, at any speed and beside any load."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from crazyflow_ros.engine.snapshot import SIZES
from crazyflow_ros.flight import (
    GoTo,
    Land,
    Pose,
    Setpoint,
    Trajectory,
    Velocity,
)
from crazyflow_ros.runtime import (
    PhysicsThread,
    ResetScope,
    SimulationConfig,
    Snapshot,
    TimedWrench,
)

T = 120.0  # s
LAST_TICK = 1800
SCRIPT_RATE = 5  # Hz; between two of its ticks there is room for bursts
FREQ = 500
N_BUSY = 3  # processes, on any machine more than one that CI runs on has to spare
STILL = np.zeros((2, 3))
LOOP = Trajectory(
    [200_000_000, 400_000_000], [[0.5, 0.2, 0.7], [0.2, 0.3, 0.8]], [0.0, 0.2], STILL, STILL
)
Script = dict[int, list[tuple[str, Setpoint | TimedWrench]]]
SCRIPT: Script = {
    100: [("cf0", Pose((0.4, 0.1, 0.6), 0.5)), ("cf1", Velocity((0.0, 0.0, 0.5), 0.0))],
    200: [
        ("cf0", TimedWrench((0, 0.02, 0), (0, 0, 1e-5), 0.1)),
        ("cf1", Velocity((0.3, 0, 0.1), 0.4)),
    ],
    300: [("cf0", LOOP)],
    400: [("cf1", Pose((0.0, 0.0, 0.0), 0.0))],  # it lands there
    600: [("cf0", Velocity((0.5, 0.0, 0.0), 1.0))],  # and lapses
    700: [("cf0", TimedWrench((0.2, 0, 0), (0, 0, 0), 0.4))],  # off its course
    900: [("cf0", GoTo((0.0, 0.0, 0.5), -0.5, relative=True))],
    1200: [("cf0", Land(yaw=1.0))],
}


def circle(x: float, period_ns: int) -> Trajectory:
    """Points of which several follow in one call, at other times than those of controllers."""
    times, angle = 10**9 + period_ns * np.arange(30), np.linspace(0, 1, 30)
    ahead, left, zero = np.cos(angle), np.sin(angle), np.zeros(30)
    rate = 1 / 29 / period_ns * 1e9
    pos = np.column_stack((x + 0.2 * ahead, 0.2 * left, zero + 0.7))
    vel = 0.2 * rate * np.column_stack((-left, ahead, zero))
    return Trajectory(times, pos, 0.2 * angle, vel, -(rate**2) * (pos - [x, 0, 0.7]))


CIRCLES: Script = {
    100: [("cf0", Pose((0.3, 0.0, 0.6), 0.5)), ("cf1", Pose((-0.7, 0.1, 0.7), 0.0))],
    600: [("cf0", circle(0.3, 37_300_001))],
    700: [("cf1", circle(-0.7, 23_000_000))],
    1400: [("cf1", Land())],
    1500: [("cf0", Velocity((0.3, 0.1, 0.0), 0.3))],
}


class Flight:
    """Flies the script after each reset, and takes all that it sees into one number."""

    def __init__(self, physics: PhysicsThread) -> None:
        self.script, self.delay, self.fields = SCRIPT, 0, set(SIZES)
        self.physics, self._hash = physics, hashlib.sha256()
        self._ended = threading.Event()
        self.states: dict[str, str] = {}  # of the drones at the last tick
        physics.every(SCRIPT_RATE, self._act, "script")
        physics.every(100, self._see, "observer", observes=True)

    def fly(self, factor: float) -> str:
        """Digest of a flight at a real-time factor."""
        self._begin()
        self.physics.set_real_time_factor(factor).result(T)
        self.physics.resume().result(T)
        assert self._ended.wait(T), f"no tick {LAST_TICK} within {T} s"
        return self._hash.hexdigest()

    def step(self, n_ticks: int) -> str:
        """Digest of a flight in steps."""
        self._begin()
        while (left := LAST_TICK - self.physics.snapshot.tick) > 0:
            self.physics.step(min(n_ticks, left)).result(T)
        return self._hash.hexdigest()

    def _begin(self) -> None:
        self.physics.pause().result(T)
        self._ended.set()  # what is seen until it is as at the start does not count
        self.physics.state.reset(ResetScope.all).result(T)
        self._hash, self.states = hashlib.sha256(), {}
        self._ended.clear()

    def _act(self, now: Snapshot) -> None:
        if now.tick == LAST_TICK:  # the flight goes on unless it was in steps
            self.states = dict(self.physics.commands.states)
        for name, told in self.script.get(now.tick - self.delay, []):
            if isinstance(told, TimedWrench):
                self.physics.apply_wrench(name, told)
            else:
                self.physics.command(name, told)

    def _see(self, now: Snapshot) -> None:
        if now.tick <= LAST_TICK and now.tick % 5 == 0 and not self._ended.is_set():
            for name in self.fields:
                self._hash.update(np.ascontiguousarray(getattr(now, name)))
            if now.tick == LAST_TICK:
                self._ended.set()


@contextmanager
def busy_machine() -> Iterator[None]:
    """Processes that want all of the processor."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(N_BUSY)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait(T)


@pytest.fixture(scope="module")
def flight() -> Iterator[Flight]:
    physics = PhysicsThread(SimulationConfig(start_paused=True), ["cf0", "cf1"])
    flight = Flight(physics)
    physics.start()
    yield flight
    physics.stop()
    assert physics.failed is None and not physics.statistics().failures


def test_a_script_of_commands_gives_the_same_bits_at_any_speed_beside_any_load(
    flight: Flight,
) -> None:
    digests = {flight.fly(factor) for factor in (0.0, 2.0, 5.0)}
    with busy_machine():
        digests |= {flight.fly(factor) for factor in (0.0, 5.0)}
    assert len(digests) == 1


def test_a_script_of_commands_gives_the_same_bits_in_any_steps(flight: Flight) -> None:
    # Rotors turn from event to event at the mean speed, and the end of a step is one.
    flight.fields = set(SIZES) - {"rotor_angle"}
    at_once = flight.fly(0.0)
    states = flight.states
    assert [flight.step(n) for n in (1, 7, 100)] == [at_once] * 3
    assert flight.states == states == {"cf0": "landing", "cf1": "landed"}
    flight.fields = set(SIZES)


def test_a_script_that_is_late_gives_others(flight: Flight) -> None:
    on_time = flight.fly(0.0)
    flight.delay = FREQ // SCRIPT_RATE
    late = flight.fly(0.0)
    flight.delay = 0
    assert late != on_time == flight.fly(0.0)


def test_commands_of_many_control_periods_at_once_give_the_bits_of_single_steps(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = flight.physics.simulation.engine
    advance, calls = engine.advance, []

    def noted(tick: int, stretches: list[int], epoch: int, *told: Any) -> list[Snapshot]:
        n_led = len(told[0]) if told else 0
        calls.append((len(stretches), n_led))
        return advance(tick, stretches, epoch, *told)

    monkeypatch.setattr(engine, "advance", noted)
    flight.script, flight.fields = CIRCLES, set(SIZES) - {"rotor_angle"}
    at_once = flight.fly(0.0)
    assert max(n_stretches for n_stretches, n_led in calls if n_led == 2) > 5
    flight.physics.pause().result(T)
    calls.clear()
    assert flight.step(1) == at_once and {n_stretches for n_stretches, _ in calls} == {1}
    assert [flight.step(n) for n in (7, 64)] == [at_once] * 2
    assert flight.states == {"cf0": "flying", "cf1": "landing"}
    flight.script, flight.fields = SCRIPT, set(SIZES)
