"""Drones that fly on their Kalman filter's estimate, with and without a source of positions."""

from __future__ import annotations

from functools import cache

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.estimation import Positioning
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.pipeline import names

WORLDS, SECONDS, HEIGHT = 32, 20, 1.0
NOTHING = Positioning(flow=False, range=False)
MOTION_CAPTURE = Positioning(flow=False, range=False, motion_capture=True)
CORNERS = tuple((x, y, z) for x, y in ((-3, -3), (3, -3), (3, 3), (-3, 3)) for z in (0.2, 2.5))
ANCHORS = Positioning(flow=False, range=False, anchors=CORNERS)
KINDS = {
    "flow": Positioning(),
    "range": Positioning(flow=False),
    "motion capture": MOTION_CAPTURE,
    "anchors": ANCHORS,
    "nothing": NOTHING,
}
ON_FLOOR = {"true_mass": True, "control": "state", "freq": 500}
TRIANGLE = np.triu_indices(9)


def hovering(positioning: Positioning | None, n_worlds: int = WORLDS, **more: object) -> Sim:
    """Drones that are to hover where they are, 1 m over the floor."""
    estimator = "none" if positioning is None else "kalman"
    sim = Sim(n_worlds, estimator=estimator, positioning=positioning, **ON_FLOOR, **more)
    pos = sim.data.states.pos.at[..., 2].set(HEIGHT)
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=pos))
    command = np.zeros((n_worlds, 1, 13))
    command[..., 2] = HEIGHT
    sim.state_control(command)
    sim.build_default_data()
    return sim


def flown(sim: Sim, seconds: int = SECONDS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True position, estimated position and true velocity, (seconds, worlds, 3)."""
    found = []
    for _ in range(seconds):
        sim.step(sim.freq)
        data = sim.data
        found.append([data.states.pos[:, 0], data.estimate.pos[:, 0], data.states.vel[:, 0]])
    true, believed, vel = np.swapaxes(np.array(found), 0, 1)
    return true, believed, vel


def errors(sim: Sim) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the estimates in the filter's coordinates (W, 9), and their covariances (W, 9, 9).

    To be called in the tick after a prediction, from which the true state is. The filter cannot
    know the offset of the range sensor, so it is no error of its height after the first readings.
    """
    estimate = sim.data.estimate
    true, offset = np.array(estimate.seen[:, 0]), np.array(estimate.errors[:, 0, 9])
    rot = Rotation.from_quat(true[:, 3:7])
    turn = Rotation.from_quat(np.array(estimate.quat[:, 0])).inv() * rot
    vel = rot.inv().apply(true[:, 7:]) - np.array(estimate.body_vel[:, 0])
    found = np.hstack([true[:, :3] - np.array(estimate.pos[:, 0]), vel, turn.as_rotvec()])
    if estimate.positioning.range and int(sim.data.core.steps[0, 0]) > sim.freq // 2:
        found[:, 2] += offset
    cov = np.zeros((len(found), 9, 9))
    cov[(slice(None), *TRIANGLE)] = estimate.covariance[:, 0]
    return found, cov + np.triu(cov, 1).transpose(0, 2, 1)


@cache
def simulation(kind: str) -> Sim:
    """Drones that hover, by their source of positions."""
    return hovering(KINDS[kind], rng_key=11)


@pytest.fixture
def flow() -> Sim:
    """Drones that hover over a flow deck, from the start."""
    sim = simulation("flow")
    sim.reset()
    return sim


def test_an_estimate_costs_nothing_unless_it_is_wanted() -> None:
    sim = hovering(None, 1)
    assert sim.data.estimate is None and "estimate_state" not in names(sim.step_pipeline)


def test_worlds_have_their_own_errors_and_flights_repeat() -> None:
    found = []
    for seed, steps in ((5, [1000]), (5, [300, 700]), (6, [1000])):
        sim = hovering(KINDS["flow"], rng_key=seed)
        for n in steps:
            sim.step(n)
        found.append(np.array(sim.data.states.pos))
    assert len(np.unique(found[0][:, 0, 0])) == WORLDS
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any(axis=(1, 2)).all()
    again, other = (Sim(2, estimator="kalman", rng_key=seed) for seed in (6, 5))
    again.seed(5)
    estimates = [jax.tree.leaves(sim.data.estimate) for sim in (again, other)]
    jax.tree.map(np.testing.assert_array_equal, *estimates)


def test_a_reset_restores_the_estimate_but_not_the_random_numbers(flow: Sim) -> None:
    flow.step(500)
    errors, mask = np.array(flow.data.estimate.errors), np.arange(WORLDS) == 0
    flow.reset(mask)
    assert flow.data.estimate.quat.any(axis=(1, 2)).tolist() == (~mask).tolist()
    flow.step(500)
    kept = (np.array(flow.data.estimate.errors) == errors).all(axis=(1, 2))
    assert kept.tolist() == (~mask).tolist()


def test_unknown_estimators_and_positions_without_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no estimator 'ukf', only none, kalman"):
        Sim(estimator="ukf")
    with pytest.raises(ValueError, match=r"positioning needs estimator=kalman, got none"):
        Sim(positioning=NOTHING)
    with pytest.raises(ValueError, match=r"an anchor"):
        Positioning(anchors=((0.0, 1.0),))


@pytest.mark.soak
@pytest.mark.parametrize("controller", ["pid", "indi", "brescianini"])
def test_all_controllers_fly_on_an_estimate(controller: str) -> None:
    sim = hovering(MOTION_CAPTURE, 4, controller=controller)
    true, believed, _ = flown(sim, 10)
    assert np.abs(true[5:] - [0, 0, HEIGHT]).max() < 0.25
    assert np.abs(true - believed)[5:].max() < 0.05


def test_with_a_flow_deck_drones_drift_as_random_walks_but_keep_their_height(flow: Sim) -> None:
    true, believed, vel = flown(flow, 60)
    drift = np.sqrt(np.square(true[..., :2] - true[0, :, :2]).mean(axis=(1, 2)))
    assert 0.02 < drift[-1] < 1.0
    # A random walk grows by the square root of time, steady motion by time.
    assert 1.2 < drift[50] / drift[12] < 3.5
    assert np.std(vel[35:]) < 1.5 * np.std(vel[5:35]) < 0.3
    assert np.abs(true[..., 2] - HEIGHT).max() < 0.1
    # They believe that they are where they should be.
    assert np.abs(believed[5:, :, :2]).max() < 0.1


@pytest.mark.parametrize(("kind", "bound"), [("motion capture", 0.03), ("anchors", 0.4)])
def test_with_positions_from_outside_drones_stay(kind: str, bound: float) -> None:
    sim = simulation(kind)
    sim.reset()
    true, believed, _ = flown(sim)
    assert np.abs(true[5:] - [0, 0, HEIGHT]).max() < bound
    assert np.abs(true - believed)[5:].max() < bound


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_as_large_as_the_covariance_says(kind: str) -> None:
    sim = simulation(kind)
    sim.reset()
    whole, shares = [], []
    for ticks in (1, 250, *[500] * 9):  # errors grow to those of a settled filter
        sim.step(ticks)
        found, cov = errors(sim)
        whole.append(np.einsum("wi,wij,wj->w", found, np.linalg.inv(cov), found).mean())
        shares.append(np.square(found) / cov.diagonal(axis1=1, axis2=2))
    # The mean of 32 squares of nine numbers is 9 with a standard deviation of 0.75. The firmware
    # expects more noise than there is, so errors are smaller.
    assert max(whole) < 9 + 4 * 0.75
    assert np.mean(whole) > 0.2
    # So is each of them: a drone that is 10 cm off does not say 10 m.
    each = np.mean(shares, axis=(0, 1))
    assert (each > 1 / 15**2).all() and (each < 2).all(), each.round(4)


def test_no_drone_is_lost_in_brisk_circles_over_a_flow_deck(flow: Sim) -> None:
    command, fastest = np.zeros((WORLDS, 1, 13)), 0.0
    for k in range(160):  # circles of 1.2 m at up to 1.7 m/s, that is 26 degrees
        time = 0.05 * k
        rate, size = 2.8, 0.6 * min(time / 2, 1)
        outwards = np.array([np.cos(rate * time), np.sin(rate * time)])
        command[..., :2], command[..., 2] = size * (outwards - [1, 0]), HEIGHT
        command[..., 3:5] = size * rate * outwards[::-1] * [-1, 1]
        command[..., 6:8] = -size * rate**2 * outwards
        flow.state_control(command)
        flow.step(25)
        fastest = max(fastest, float(np.linalg.norm(flow.data.states.vel[:, 0], axis=-1).max()))
        assert np.abs(flow.data.states.pos[..., 2] - HEIGHT).max() < 0.5, time
    assert fastest > 1.5
    assert np.linalg.norm(flow.data.states.pos[:, 0], axis=-1).max() < 4


def test_without_a_source_of_positions_drones_drift_away() -> None:
    sim = simulation("nothing")
    sim.reset()
    true, *_ = flown(sim)
    drift = np.linalg.norm(true - [0, 0, HEIGHT], axis=-1)
    assert np.median(drift[-1]) > 1.0 > np.median(drift[0])
    assert np.median(drift[-1]) > 3 * np.median(drift[9])
