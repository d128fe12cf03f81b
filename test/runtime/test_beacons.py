"""Beacons in a running simulation: walls between, what the firmware is told, starts anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crazyflow_ros.estimation import Positioning
from crazyflow_ros.estimation.base_stations import USUAL_STATIONS
from crazyflow_ros.estimation.beacons import columns, heard
from crazyflow_ros.flight import FlightState, GoTo, Land, Takeoff
from crazyflow_ros.runtime import PhysicsThread, ResetScope, SimulationConfig, Snapshot

T = 300.0  # s
ANCHORS = ((3.0, 0.0, 1.0), (-3.0, 3.0, 2.0))
SOURCES = Positioning(flow=False, range=False, stations=USUAL_STATIONS, anchors=ANCHORS)
OWN = columns(SOURCES)
WALL = '<geom type="box" size="0.1 0.5 2" pos="1 0 2"/>'
SCREEN = '<geom type="box" size="0.5 0.5 0.02" pos="-1.25 -1.25 1.4"/>'
WORLD = """
<mujoco><worldbody><geom type="plane" size="9 9 .1"/>{}</worldbody></mujoco>
"""


def world(folder: Path, *bodies: str) -> str:
    path = folder / "world.xml"
    path.write_text(WORLD.format("".join(bodies)))
    return str(path)


@pytest.fixture(scope="module")
def physics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhysicsThread]:
    scene = world(tmp_path_factory.mktemp("world"), WALL, SCREEN)
    config = SimulationConfig(
        scene=scene, true_mass=True, start_paused=True, estimator="kalman", positioning=SOURCES
    )
    found = PhysicsThread(config, ["cf0"])
    found.start()
    yield found
    found.stop()
    assert found.failed is None and not found.statistics().failures


def flown(physics: PhysicsThread, seconds: float) -> Snapshot:
    return physics.step(round(seconds * physics.freq)).result(T)


def memory(physics: PhysicsThread) -> np.ndarray:
    engine = physics.simulation.engine
    return np.array(engine.world.numbers["estimate.beacons"][engine.slots["cf0"]])


def received(now: Snapshot) -> list[bool]:
    assert now.heard is not None
    light = now.heard[0, OWN["lighthouse"]]
    return [bool(light[8] > 0), bool(light[18] > 0)]


def test_walls_hide_stations_and_have_their_thickness(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    now = flown(physics, 1)
    matter = memory(physics)[OWN["matter"]]
    way = np.array(ANCHORS[0]) - now.pos[0]
    assert matter[2] == pytest.approx(0.2 * np.linalg.norm(way) / way[0], rel=1e-3)
    way = np.array(USUAL_STATIONS[0].origin) - now.pos[0]
    assert matter[0] == pytest.approx(0.04 * np.linalg.norm(way) / way[2], rel=1e-3)
    assert matter[1] == matter[3] == 0
    assert received(now) == [False, True]


def test_a_drone_that_leaves_the_shadow_sees_the_station(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    assert not physics.fly({"cf0": Takeoff(0.7, 1.5)}).result(T).refused
    flown(physics, 2)
    assert not physics.fly({"cf0": GoTo((0.0, 1.2, 0.7), 0.0, 2.0)}).result(T).refused
    now = flown(physics, 3)
    assert received(now) == [True, True] and not memory(physics)[OWN["matter"]].any()
    assert now.believed is not None
    assert np.linalg.norm(now.believed.pos - now.pos) < 0.2
    physics.fly({"cf0": Land(0.0, 1.5)}).result(T)
    flown(physics, 3)
    assert physics.commands.states["cf0"] is FlightState.landed


def test_a_flight_is_the_same_however_the_user_steps(physics: PhysicsThread) -> None:
    ends = []
    for ticks in (500, 7):
        physics.state.reset(ResetScope.time | ResetScope.state).result(T)
        start = physics.snapshot.tick
        physics.fly({"cf0": Takeoff(0.7, 1.0)}).result(T)
        while (left := start + 700 - physics.snapshot.tick) > 0:
            now = physics.step(min(ticks, left)).result(T)
        ends.append((now.pos, now.heard))
    assert np.array_equal(ends[0][0], ends[1][0]) and np.array_equal(ends[0][1], ends[1][1])
    assert ends[0][1].shape == (1, heard(SOURCES).stop)


def test_wrong_geometry_leads_the_filter_astray_until_it_is_mended(
    physics: PhysicsThread,
) -> None:
    physics.state.reset().result(T)
    tell = physics.firmware.set_beacons
    tell("cf0", "loco.fwdToEstimator", 0).result(T)
    right = memory(physics)[OWN["known"]]
    wrong = right.copy()
    wrong[[0, 27]] += 0.5  # x of both
    tell("cf0", "known", wrong).result(T)
    now = flown(physics, 3)
    assert now.believed is not None
    assert now.believed.pos[0, 0] - now.pos[0, 0] > 0.3
    tell("cf0", "known", right).result(T)
    physics.firmware.restart_estimate("cf0", np.zeros(4)).result(T)
    now = flown(physics, 2)
    assert now.believed is not None
    assert np.abs(now.believed.pos - now.pos).max() < 0.15


@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        ("lighthouse.methods", 1, "method"),
        ("known", [1.0], "known"),
        ("loco.mode", np.nan, "loco.mode"),
    ],
)
def test_impossible_numbers_are_refused(
    physics: PhysicsThread, column: str, values: object, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        physics.firmware.set_beacons("cf0", column, values)  # type: ignore[arg-type]
