"""External wrenches: how long they act, and what they do to a drone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.runtime import (
    InvalidState,
    PhysicsThread,
    SimulationConfig,
    Snapshot,
    TimedWrench,
)
from crazyflow_ros.scene.frames import quat_from_rpy

T = 120.0  # s, no wait of a test is longer
FREQ = 500
NONE = (0.0, 0.0, 0.0)
MASS, INERTIA = load_drone("cf2x_L250")["mass"], load_drone("cf2x_L250")["J"]
WEIGHT = MASS * 9.81  # N


@pytest.fixture(scope="module")
def physics() -> Iterator[PhysicsThread]:
    """Two paused drones high above the floor, rotors at rest; the second looks left, nose up."""
    poses = np.zeros((2, 7))
    poses[:, :3] = (0, 0, 100), (5, 0, 100)
    poses[0, 6] = 1.0
    poses[1, 3:] = quat_from_rpy(np.array([0.0, -math.pi / 2, math.pi / 2]))
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, initial_poses=poses)
    physics = PhysicsThread(config, ["cf0", "cf1"])
    physics.start()
    yield physics
    physics.stop()


@pytest.fixture(autouse=True)
def _at_rest(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)


def step(physics: PhysicsThread, ticks: int) -> Snapshot:
    return physics.step(ticks).result(T)


def gained(physics: PhysicsThread, ticks: int) -> np.ndarray:
    """Velocity (2, 3) after some ticks, beyond that of a fall of `ticks`."""
    return step(physics, ticks).vel + np.array([0.0, 0.0, 9.81 * ticks / FREQ])


@pytest.mark.parametrize(("duration", "ticks"), [(0.0, 1), (0.001, 1), (0.006, 3), (0.02, 10)])
def test_force_acts_for_its_duration(physics: PhysicsThread, duration: float, ticks: int) -> None:
    future = physics.apply_wrench("cf0", TimedWrench((WEIGHT, 0.0, WEIGHT), NONE, duration))
    speed = 9.81 * ticks / FREQ
    velocity = gained(physics, 20)
    np.testing.assert_allclose(velocity[0], (speed, 0, speed), rtol=0.02, atol=5e-3)
    np.testing.assert_allclose(velocity[1], 0, atol=5e-3)
    assert future.done() and future.result() is None


def test_lasting_force_lasts(physics: PhysicsThread) -> None:
    future = physics.apply_wrench("cf0", TimedWrench((WEIGHT, 0, 0), NONE, math.inf))
    assert gained(physics, 100)[0, 0] == pytest.approx(9.81 * 0.2, rel=0.05)
    assert not future.done()


def test_force_in_axes_of_the_drone_turns_with_it(physics: PhysicsThread) -> None:
    """Forward of the second drone is up, its up is south."""
    physics.apply_wrench("cf1", TimedWrench((WEIGHT, 0, 2 * WEIGHT), NONE, 0.02, in_body=True))
    speed = 9.81 * 0.02
    np.testing.assert_allclose(gained(physics, 10)[1], (0, -2 * speed, speed), atol=5e-3)


def test_force_beside_the_centre_turns_the_drone(physics: PhysicsThread) -> None:
    """1 cm ahead, upwards: the nose rises. A torque of the same size, the other way, cancels it."""
    lift = TimedWrench((0, 0, 0.1), NONE, 0.02, point=(0.01, 0, 0))
    physics.apply_wrench("cf0", lift)
    rate = step(physics, 10).ang_vel[0]
    np.testing.assert_allclose(rate, (0, -0.001 * 0.02 / INERTIA[1][1], 0), rtol=0.05, atol=1e-3)
    physics.state.reset().result(T)
    physics.apply_wrench("cf0", TimedWrench((0, 0, 0.1), (0, 0.001, 0), 0.02, point=(0.01, 0, 0)))
    np.testing.assert_allclose(step(physics, 10).ang_vel[0], 0, atol=1e-3)


def test_ramp_halves_the_momentum(physics: PhysicsThread) -> None:
    """Held from controller to controller, 500 times a second, from the full force downwards."""
    physics.apply_wrench("cf0", TimedWrench((WEIGHT, 0, 0), NONE, 0.2, ramp_down=0.2))
    assert gained(physics, 120)[0, 0] == pytest.approx(9.81 * 0.1, rel=0.1)


def test_wrenches_add_up_but_those_of_one_key_replace_each_other(physics: PhysicsThread) -> None:
    force = TimedWrench((WEIGHT, 0, 0), NONE, 0.02)
    first, second = (physics.apply_wrench("cf0", force, "hand") for _ in range(2))
    assert first.done() and not second.done()
    physics.apply_wrench("cf0", force)
    physics.apply_wrench("cf0", force)
    assert gained(physics, 20)[0, 0] == pytest.approx(3 * 9.81 * 0.02, rel=0.05)


def test_wrench_can_be_ended(physics: PhysicsThread) -> None:
    future = physics.apply_wrench("cf0", TimedWrench((WEIGHT, 0, 0), NONE, math.inf), "hand")
    step(physics, 10)
    physics.end_wrench("hand")
    physics.end_wrench("nobody's")
    assert gained(physics, 20)[0, 0] == pytest.approx(9.81 * 0.02, rel=0.05)
    assert future.done() and future.result() is None


def test_wrench_ends_with_a_reset(physics: PhysicsThread) -> None:
    in_force = physics.apply_wrench("cf0", TimedWrench((WEIGHT, 0, 0), NONE, math.inf))
    step(physics, 5)
    posted = physics.apply_wrench("cf1", TimedWrench((WEIGHT, 0, 0), NONE, math.inf))
    physics.state.reset().result(T)
    for future in (in_force, posted):
        with pytest.raises(InvalidState, match="was reset"):
            future.result(T)
    np.testing.assert_allclose(gained(physics, 20), 0, atol=5e-3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"force": (0, math.nan, 0)}, "force must be 3 finite numbers"),
        ({"torque": (0, 0)}, "torque must be 3 finite numbers"),
        ({"point": (math.inf, 0, 0)}, "point must be 3 finite numbers"),
        ({"duration": -1.0}, "duration must be 0 s or more, got -1.0"),
        ({"duration": math.nan}, "duration must be 0 s or more, got nan"),
        ({"ramp_down": 2.0}, "ramp_down must be from 0 s to the duration of 1 s, got 2.0"),
    ],
)
def test_bad_wrench_is_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        TimedWrench(**({"force": NONE, "torque": NONE, "duration": 1.0} | change))


def test_unknown_drone_is_refused(physics: PhysicsThread) -> None:
    with pytest.raises(ValueError, match="there is no drone 'cf7', only cf0, cf1"):
        physics.apply_wrench("cf7", TimedWrench(NONE, NONE, 1.0))
