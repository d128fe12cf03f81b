"""Positions far from the origin, where single precision resolves a millimetre."""

from __future__ import annotations

import numpy as np
import pytest

from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.kept_state import capture
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.engine.snapshot import Snapshot

FAR = (0.0, 150.0, -1200.0, 9800.0)
HEIGHT, PERIOD, FREQ = 0.8, 5, 500


@pytest.fixture(scope="module")
def built() -> Engine:
    poses = np.array([[x, 0.0, rest_height("cf2x_L250"), 0, 0, 0, 1] for x in FAR])
    config = SimulationConfig(true_mass=True, initial_poses=poses)
    return Engine(config, [f"cf{i}" for i in range(len(FAR))])


@pytest.fixture
def engine(built: Engine) -> Engine:
    """Drones that hover where they started."""
    built.reset()
    flown(built, 1, 0.0, 1500)
    return built


def flown(engine: Engine, tick: int, speed: float, ticks: int) -> list[Snapshot]:
    """Command a velocity along x and along y for some ticks; return the states."""
    command = np.zeros((len(FAR), 16))
    command[:, 2], command[:, 3:5], command[:, 12] = HEIGHT, speed, 1.0
    found = []
    for k in range(0, ticks, PERIOD):
        command[:, 1] = speed * (k + PERIOD) / FREQ
        command[:, 0] = FAR + command[:, 1]
        engine.set_commands(engine.names, rows(Level.state, command))
        found += engine.advance(tick + k, [PERIOD], 0)
    return found


@pytest.mark.parametrize("speed", [0.03, 0.15])
def test_a_drone_moves_as_fast_as_it_says_wherever_it_is(engine: Engine, speed: float) -> None:
    states = flown(engine, 1501, speed, 3000)[200:]
    way = states[-1].pos - states[0].pos
    seconds = (len(states) - 1) * PERIOD / FREQ
    mean = np.mean([now.vel for now in states], axis=0)
    np.testing.assert_allclose(way[:, :2] / seconds, mean[:, :2], atol=2e-3 * speed)
    # Far away setpoints are rounded, too.
    np.testing.assert_allclose(mean[:, :2], speed, rtol=0.02)


def test_a_drone_hovers_as_precisely_wherever_it_is(engine: Engine) -> None:
    errors = [now.pos - [[x, 0, HEIGHT] for x in FAR] for now in flown(engine, 1501, 0.0, 1000)]
    off = np.abs(errors[100:] - np.array(errors)[100:, :1])  # from the one at the origin
    assert off.max() < 1e-3  # of which half a millimetre is that of the setpoint


def test_the_origin_does_not_matter_for_the_flight(engine: Engine) -> None:
    """Drones that fall freely take the same way, to a micrometre, at any distance."""
    start = engine.advance(1501, [0], 0)[0]
    fields = {"vel": np.tile([0.21, -0.13, 0.4], (len(FAR), 1))}
    for name in engine.names:
        engine.disarm(name)
    engine.put(engine.names, fields)
    (end,) = engine.advance(1501, [40], 0)
    way = end.pos - start.pos
    np.testing.assert_allclose(way, way[:1].repeat(len(FAR), axis=0), atol=2e-6)
    assert np.linalg.norm(way[0]) > 0.01


def test_a_place_is_kept_to_a_nanometre_and_others_keep_theirs_to_the_bit(engine: Engine) -> None:
    flown(engine, 1501, 0.07, 100)
    before = capture(engine)
    place = np.array([[9876.543210987, -1234.567890123, 17.123456789]])
    engine.put(["cf1"], {"pos": place})
    (now,) = engine.advance(1601, [0], 0)
    np.testing.assert_allclose(now.pos[1:2], place, rtol=0, atol=1e-9)
    engine.put(engine.names, {"pos": now.pos})  # all of them, where they are
    after = capture(engine)
    for name in ("state/states.pos", "state/plugins.pos_low"):
        np.testing.assert_array_equal(after[name][:, [0, 2, 3]], before[name][:, [0, 2, 3]])
