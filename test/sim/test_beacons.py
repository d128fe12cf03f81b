"""Drones that fly by base stations of a Lighthouse, and by radio anchors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crazyflow_ros.estimation import Positioning
from crazyflow_ros.estimation.base_stations import USUAL_STATIONS
from crazyflow_ros.estimation.beacons import columns
from crazyflow_ros.estimation.beacons import restarted as reopened
from crazyflow_ros.estimation.estimate import restarted
from crazyflow_ros.sim import Sim

FREQ, WORLDS = 500, 32
RADIUS, SPEED = 0.8, 0.5  # m, m/s
ANCHORS = tuple((x, y, z) for x, y in ((-3, -3), (3, -3), (3, 3), (-3, 3)) for z in (0.2, 2.5))
KINDS = {
    "lighthouse": Positioning(flow=False, range=False, stations=USUAL_STATIONS),
    **{
        kind: Positioning(flow=False, range=False, anchors=ANCHORS, ranging=kind)
        for kind in ("tdoa2", "tdoa3", "twr")
    },
}
_sims: dict[str, Sim] = {}


def flying(kind: str, seed: int = 0) -> Sim:
    """Drones that hover at 1 m."""
    sim = _sims.get(kind)
    if sim is None:
        sim = _sims[kind] = Sim(
            WORLDS, control="state", freq=FREQ, true_mass=True, rng_key=seed,
            estimator="kalman", positioning=KINDS[kind],
        )  # fmt: skip
    sim.reset()
    assert sim.data.estimate is not None
    states = sim.data.states
    pos, speed = states.pos.at[..., 2].set(1.0), states.rotor_vel + 19_000.0
    sim.data = sim.data.replace(
        states=states.replace(pos=pos, rotor_vel=speed), estimate=sim.data.estimate.seeded(seed)
    )
    command(sim, 0.0, 0.0)
    return sim


def command(sim: Sim, time: float, speed: float) -> None:
    given, rate = np.zeros((WORLDS, 1, 13)), speed / RADIUS
    size, out = RADIUS * min(time / 2, 1), np.array([np.cos(rate * time), np.sin(rate * time)])
    given[..., 2] = 1.0
    if speed:
        given[..., :2] = size * (out - [1, 0])
        given[..., 3:5] = size * rate * out[::-1] * [-1, 1]
    sim.state_control(given)


def error(sim: Sim) -> np.ndarray:
    assert sim.data.estimate is not None
    return np.array(sim.data.estimate.pos)[:, 0] - np.array(sim.data.states.pos)[:, 0]


def distances(sim: Sim) -> np.ndarray:
    """How far estimates are from the truth in circles [m]."""
    found = []
    for k in range(20 * 12):
        command(sim, k / 20, SPEED)
        sim.step(FREQ // 20)
        if k > 20 * 4:
            found.append(np.linalg.norm(error(sim), axis=1))
    return np.array(found)


def test_a_lighthouse_is_as_accurate_as_published() -> None:
    # Taffanel et al. 2021, arXiv 2104.11523: mean and median of 2 to 4 cm.
    away = distances(flying("lighthouse", seed=1))
    assert 0.02 < away.mean() < 0.04 and 0.02 < np.median(away) < 0.04


@pytest.mark.parametrize("kind", ["tdoa2", "tdoa3"])
def test_differences_of_distances_are_as_accurate_as_published(kind: str) -> None:
    # Bitcraze: in the range of 10 cm.
    away = distances(flying(kind, seed=1))
    assert 0.05 < np.median(away) < 0.15 and away.max() < 0.5


@pytest.mark.parametrize("kind", ["lighthouse", "tdoa3"])
def test_the_same_seed_gives_the_same_bits(kind: str) -> None:
    runs = []
    for seed in (3, 3, 4):
        sim = flying(kind, seed)
        sim.step(700)
        assert sim.data.estimate is not None
        runs.append(np.array(sim.data.estimate.pos))
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_that_starts_again_elsewhere_finds_its_place(kind: str) -> None:
    sim = flying(kind)
    sim.step(1000)
    estimate = sim.data.estimate
    assert estimate is not None
    fresh = restarted(np.array([1.0, -1.0, 0.5, 0.3]))
    fresh["beacons"] = reopened(KINDS[kind], np.array(estimate.beacons))
    parts = {name: getattr(estimate, name).at[:].set(value) for name, value in fresh.items()}
    before = error(sim)
    sim.data = sim.data.replace(estimate=estimate.replace(**parts))
    assert np.linalg.norm(error(sim), axis=1).min() > 1
    sim.step(1500)
    after = np.linalg.norm(error(sim), axis=1)
    assert np.median(after) < 2 * np.linalg.norm(before, axis=1).mean() + 0.1
    # In the air, the firmware's filter of TDoA seldom takes a wrong place for the right one.
    assert np.sort(after)[-3] < 1.0


def test_without_sight_of_a_station_nothing_of_it_is_heard() -> None:
    sim = flying("lighthouse")
    own = columns(KINDS["lighthouse"])
    estimate = sim.data.estimate
    assert estimate is not None and estimate.beacons is not None
    hidden = estimate.beacons.at[..., own["matter"].start].set(0.1)
    sim.data = sim.data.replace(estimate=estimate.replace(beacons=hidden))
    sim.step(500)
    assert sim.data.estimate is not None
    heard = np.array(sim.data.estimate.beacons)[:, 0, own["lighthouse"]]
    assert not heard[:, :10].any()
    assert (heard[:, 18] > 0).all()  # the other one is received
    assert np.linalg.norm(error(sim), axis=1).max() < 0.2  # and enough, as the firmware says


def test_a_station_that_does_not_face_the_drone_sees_nothing() -> None:
    sim = flying("lighthouse")
    states = sim.data.states
    sim.data = sim.data.replace(states=states.replace(pos=states.pos.at[..., 2].set(4.0)))
    sim.step(30)
    assert sim.data.estimate is not None
    heard = np.array(sim.data.estimate.beacons)[:, 0, columns(KINDS["lighthouse"])["lighthouse"]]
    assert not heard[:, [8, 18]].any()  # it is above them, and its sensors look upwards


def captured(**errors: float) -> tuple[float, float]:
    """How far ahead drones in circles believe to be [s], and how unsure they are [m]."""
    sources = Positioning(flow=False, range=False, motion_capture=True, **errors)  # type: ignore[arg-type]
    KINDS["captured"] = sources
    _sims.pop("captured", None)
    sim = flying("captured")
    ahead = []
    for k in range(20 * 6):
        command(sim, k / 20, SPEED)
        sim.step(FREQ // 20)
        vel = np.array(sim.data.states.vel)[:, 0]
        if k > 20 * 3:
            ahead.append((error(sim) * vel).sum(axis=1) / np.square(vel).sum(axis=1))
    assert sim.data.estimate is not None
    return float(np.mean(ahead)), float(np.sqrt(sim.data.estimate.variances[..., 0]).mean())


def test_motion_capture_that_is_late_or_blind_shows_in_the_estimate() -> None:
    prompt, late, blind = captured(), captured(capture_delay=0.05), captured(capture_dropout=0.9)
    assert prompt[0] - late[0] == pytest.approx(0.05, rel=0.1)
    assert late[1] == pytest.approx(prompt[1], rel=0.1) and blind[1] > 1.5 * prompt[1]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"capture_dropout": 1.0}, "less than 1"),
        ({"capture_delay": -0.1}, "0.2 s"),
        ({"ranging": "tof"}, "twr"),
        ({"ranging": "tdoa2", "anchors": ((0.0, 0.0, 1.0),)}, "two anchors"),
        ({"stations": USUAL_STATIONS[:1] * 2}, "channels"),
    ],
)
def test_impossible_sources_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Positioning(**given)


def test_what_stands_between_lengthens_distances() -> None:
    sim = flying("twr")
    own, estimate = columns(KINDS["twr"]), sim.data.estimate
    assert estimate is not None and estimate.beacons is not None
    walls = estimate.beacons.at[..., own["matter"]].set(0.3)
    sim.data = sim.data.replace(estimate=estimate.replace(beacons=walls))
    sim.step(200)
    assert sim.data.estimate is not None
    memory = np.array(sim.data.estimate.beacons)[:, 0]
    lengths = memory[:, own["loco"]].reshape(WORLDS, len(ANCHORS), -1)[..., 0]
    true = np.linalg.norm(np.array(ANCHORS) - [0, 0, 1], axis=1)
    longer = (lengths - true)[lengths > 0] - 0.9 * 0.3  # a wave in brick needs 1.9 times as long
    assert 0.1 < longer.mean() < 0.4  # detours, 0.3 m * sqrt(2 / pi) on average
