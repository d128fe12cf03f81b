"""The estimator of running drones: the same bits however ticks are grouped, resets, poses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.interventions import restart_estimate, tell_pose
from crazyflow_ros.engine.kept_state import capture, restore
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.estimation import Positioning

N, PERIOD = 2, 5  # drones, ticks between two predictions


@pytest.fixture(scope="module")
def built() -> Engine:
    external = Positioning(external=True)
    config = SimulationConfig(true_mass=True, estimator="kalman", positioning=external)
    return Engine(config, [f"cf{i}" for i in range(N)])


@pytest.fixture
def engine(built: Engine) -> Engine:
    """Drones that climb to 0.6 m."""
    built.reset()
    command = np.zeros((N, 16))
    command[:, :2] = built.initial.poses(built.slots_of(built.names))[:, :2]
    command[:, 2], command[:, 12] = 0.6, 1.0
    built.set_commands(built.names, rows(Level.state, command))
    return built


def flown(engine: Engine, tick: int, stretches: list[int]) -> Snapshot:
    for n in stretches:
        (snapshot,) = engine.advance(tick, [n], 0)
        tick += n
    return snapshot


def same(a: Snapshot, b: Snapshot) -> None:
    for name in ("pos", "quat", "vel", "ang_vel"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.believed is not None and b.believed is not None
    for x, y in zip(a.believed, b.believed):
        np.testing.assert_array_equal(x, y)


def test_flights_are_the_same_however_ticks_are_grouped(engine: Engine) -> None:
    kept = capture(engine)
    whole = flown(engine, 1, [500])
    restore(engine, kept)
    same(whole, flown(engine, 1, [1, 3, 96, 50, *[10] * 35]))


def test_a_flight_continues_from_what_was_captured(engine: Engine) -> None:
    flown(engine, 1, [203])
    kept = capture(engine)
    ahead = flown(engine, 204, [300])
    engine.reset()
    restore(engine, kept)
    same(ahead, flown(engine, 204, [300]))


def test_a_drone_believes_where_it_is_before_the_first_tick(engine: Engine) -> None:
    (now,) = engine.advance(1, [0], 0)
    assert now.believed is not None
    np.testing.assert_array_equal(now.believed.pos, now.pos)
    np.testing.assert_array_equal(now.believed.quat, now.quat)


def test_a_drone_knows_its_state_after_a_reset_but_no_more_after_a_flight(engine: Engine) -> None:
    after = flown(engine, 1, [2500])
    assert after.believed is not None
    errors = np.linalg.norm(after.believed.pos - after.pos, axis=1)
    assert (errors > 1e-3).all() and (errors < 0.5).all()
    assert np.abs(after.pos[:, 2] - 0.6).max() < 0.1
    engine.reset(["cf0"])
    (now,) = engine.advance(2502, [1], 0)  # between two predictions
    assert now.believed is not None
    np.testing.assert_allclose(now.believed.pos[0], now.pos[0], atol=1e-4)
    assert np.linalg.norm(now.believed.pos[1] - now.pos[1]) > 1e-3


def test_each_life_of_a_drone_has_its_own_errors(engine: Engine) -> None:
    flown(engine, 1, [50])
    first = engine.world.leaves["estimate.errors"].copy()
    engine.reset(["cf0"])
    flown(engine, 51, [50])
    second = engine.world.leaves["estimate.errors"]
    assert (first[0, 0] != second[0, 0]).all()
    np.testing.assert_array_equal(first[0, 1], second[0, 1])
    assert (first[0, 0] != first[0, 1]).all()


def test_a_drone_that_is_told_to_be_elsewhere_believes_it_and_flies_back(engine: Engine) -> None:
    before = flown(engine, 1, [1000])
    for k in range(10):
        told = np.array([*before.pos[0] + [0.5, 0, 0], 0, 0, 0, 0])
        tell_pose(engine, "cf0", told, (0.01, 0.0045))
        now = flown(engine, 1001 + k * PERIOD, [PERIOD])
    assert now.believed is not None
    assert now.believed.pos[0, 0] - before.pos[0, 0] > 0.4
    assert abs(now.believed.pos[1, 0] - before.pos[1, 0]) < 0.2
    after = flown(engine, 1051, [1000])
    assert after.pos[0, 0] - before.pos[0, 0] < -0.3
    assert abs(after.pos[1, 0] - before.pos[1, 0]) < 0.2


def test_poses_from_outside_leave_errors_as_large_as_the_variances_say(engine: Engine) -> None:
    rng, shares = np.random.default_rng(1), []
    pos_std, quat_std = 0.02, 0.01
    now = flown(engine, 1, [1000])
    for k in range(1000):
        for name, pos, quat in zip(engine.names, now.pos, now.quat):
            turned = Rotation.from_quat(quat) * Rotation.from_rotvec(rng.normal(0, quat_std, 3))
            told = np.hstack([pos + rng.normal(0, pos_std, 3), turned.as_quat()])
            tell_pose(engine, name, told, (pos_std, quat_std))
        now = flown(engine, 1001 + k * PERIOD, [PERIOD])
        if k > 100 and k % 20 == 0 and now.believed is not None:
            true, known = Rotation.from_quat(now.quat), Rotation.from_quat(now.believed.quat)
            vel = true.inv().apply(now.vel) - known.inv().apply(now.believed.vel)
            errors = [now.pos - now.believed.pos, vel, (known.inv() * true).as_rotvec()]
            shares.append(np.square(np.hstack(errors)) / now.believed.variances)
    each = np.delete(np.mean(shares, axis=(0, 1)), 2)  # its height is that of the range sensor
    assert (each > 1 / 15**2).all() and (each < 2).all(), each.round(4)


def test_an_estimator_starts_again_where_it_is_told(engine: Engine) -> None:
    flown(engine, 1, [100])
    engine.reset(["cf0"])  # and has no command
    restart_estimate(engine, "cf0", np.array([3.0, -2.0, 0.5, np.pi / 2]))
    (now,) = engine.advance(101, [0], 0)
    assert now.believed is not None
    np.testing.assert_allclose(now.believed.pos[0], [3, -2, 0.5])
    np.testing.assert_allclose(now.believed.quat[0], [0, 0, np.sqrt(0.5), np.sqrt(0.5)], rtol=1e-6)
    np.testing.assert_allclose(now.believed.variances[0, :6], [100, 100, 1, *[1e-4] * 3], rtol=1e-6)


def test_without_an_estimator_there_is_no_belief() -> None:
    engine = Engine(SimulationConfig(), ["cf0"])
    (now,) = engine.advance(1, [0], 0)
    assert now.believed is None
    assert not any("estimate" in path for path in engine.world.leaves)
