"""Drones of known figures, flown by our own simulation, are found again from their logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_flights as synthetic

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.flight_logs import FlightLog, TimedValues, read_flight_log
from crazyflow_ros.flight_logs.motion import in_the_air, motion_of
from crazyflow_ros.identification import (
    Fit,
    identify_rigid_body,
    judged,
    leave_one_out,
    open_loop_errors,
    rigid_body_fit,
    with_fit,
)
from crazyflow_ros.identification.equations import RATE

DRONE = synthetic.DRONE
SECONDS = 30.0

Truth = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def flown() -> tuple[Truth, list[FlightLog]]:
    truth = synthetic.truths(synthetic.FEW, seed=0)
    return truth, synthetic.fly(truth, "pid", SECONDS, seed=0)


def fit_of(log: FlightLog, number: int, folder: Path) -> Fit:
    """The fit of a flight that was written in one of the formats, and read again."""
    write = synthetic.FORMATS[number % len(synthetic.FORMATS)]
    read = read_flight_log(write(synthetic.measured(log, number), folder / f"flight{number}"))
    return identify_rigid_body([in_the_air(read)], DRONE)


def covered(truth: Truth, fits: list[Fit]) -> dict[str, float]:
    """Of each figure the share of the drones that it is within its ± of the truth.

    Those that the flights do not determine do not count; they are few.
    """
    hits, all_of = Counter[str](), Counter[str]()
    for i, fit in enumerate(fits):
        for name in truth.keys() & fit.values.keys():
            errors = np.abs(fit.values[name] - truth[name][i]) / (2 * fit.deviations[name])
            for axis, error in enumerate(errors):
                hits[f"{name}[{axis}]"] += bool(error <= 1)
                all_of[f"{name}[{axis}]"] += bool(np.isfinite(error))
    assert min(all_of.values()) > 0
    return {name: hits[name] / n for name, n in all_of.items()}


@pytest.mark.soak
def test_drones_are_found_within_what_is_printed(tmp_path: Path) -> None:
    truth = synthetic.truths(10, seed=0)
    logs = synthetic.fly(truth, "pid", SECONDS, seed=0)
    fits = [fit_of(log, i, tmp_path) for i, log in enumerate(logs)]
    shares = covered(truth, fits)
    assert shares.keys() >= {"J[2]", "motor_lag[0]", "rotor_moment[1]", "thrust_offset[2]"}
    assert min(shares.values()) >= 0.7, shares  # of 10; all 50 below
    assert np.mean(list(shares.values())) >= 0.9, shares
    for i, fit in enumerate(fits):
        assert fit.values["thrust"][0] == pytest.approx(truth["thrust"][i, 0], rel=3e-3)
        np.testing.assert_allclose(fit.values["J"], truth["J"][i], rtol=0.15)
        np.testing.assert_allclose(fit.values["drag_xy"], truth["drag_xy"][i], rtol=0.03)
        np.testing.assert_allclose(fit.values["rotor_moment"], truth["rotor_moment"][i], rtol=0.06)
        assert not np.isnan(np.concatenate([*fit.deviations.values()])).any()


@pytest.mark.soak
@pytest.mark.parametrize("controller", ["pid", "mellinger"])
def test_fifty_drones_are_found_within_what_is_printed(controller: str, tmp_path: Path) -> None:
    truth = synthetic.truths(50, seed=1)
    logs = synthetic.fly(truth, controller, SECONDS, seed=1)
    found = [fit_of(log, i, tmp_path) for i, log in enumerate(logs)]
    shares = covered(truth, found)
    print(controller, shares)
    assert min(shares.values()) >= 0.9, shares


@pytest.mark.soak
def test_correlations_are_those_of_fits_with_other_noise(
    flown: tuple[Truth, list[FlightLog]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise of the rotors' forces and torques, which is larger than what the model lacks."""
    log, original = synthetic.without_speeds(in_the_air(flown[1][1])), rigid_body_fit._wrench
    motion = motion_of(log, RATE)
    monkeypatch.setattr(rigid_body_fit, "motion_of", lambda *_: motion)
    found, stated, runs = [], [], 250
    for seed in range(runs):

        def noisy(*given: Any, seed: int = seed) -> Any:
            wrench, rng = original(*given), np.random.default_rng(seed)
            thrust = wrench.thrust + 0.02 * rng.normal(size=wrench.thrust.shape)
            lift = wrench.lift + 3e-4 * rng.normal(size=wrench.lift.shape)
            return replace(wrench, thrust=thrust, lift=lift)

        monkeypatch.setattr(rigid_body_fit, "_wrench", noisy)
        fit = identify_rigid_body([log], DRONE)
        kept = ("thrust", "J", "drag_z", "rotor_moment", "motor_lag")
        names = [name for name, value in fit.values.items() for _ in value]
        rows = np.flatnonzero(np.isin(names, kept))
        assert fit.covariance is not None
        stated.append(fit.covariance[np.ix_(rows, rows)])
        found.append(np.log(np.concatenate([fit.values[x] for x in fit.values if x in kept])))
    mean, expected = np.mean(stated, axis=0), np.corrcoef(np.transpose(found))
    size = np.sqrt(np.diag(mean))
    np.testing.assert_allclose(mean / np.outer(size, size), expected, atol=0.2)
    assert expected[4, -1] > 0.6  # drag_z with the lag


def test_without_noise_errors_are_small(flown: tuple[Truth, list[FlightLog]]) -> None:
    """From rotor speeds at the rate of the control loop, and from its duty cycles."""
    truth, logs = flown
    for log in (logs[0], replace(logs[0], rotor_vel=None)):
        fit = identify_rigid_body([in_the_air(log)], DRONE)
        for name in truth.keys() & fit.values.keys():
            # A command holds for a tick of 2 ms: on average, it is 1 ms late.
            atol = 0.03 if name == "motor_lag" else 0.01
            scale = 1e-3 if name == "thrust_offset" else truth[name][0]
            np.testing.assert_allclose(
                fit.values[name] / scale, truth[name][0] / scale, atol=atol, err_msg=name
            )


def test_late_poses_are_noticed(flown: tuple[Truth, list[FlightLog]]) -> None:
    truth, logs = flown
    late = in_the_air(synthetic.measured(logs[1], 1, delay=0.02))
    fit = identify_rigid_body([late], DRONE)
    np.testing.assert_allclose(fit.values["J"], truth["J"][1], rtol=0.03)
    np.testing.assert_allclose(fit.values["drag_z"], truth["drag_z"][1], rtol=0.05)


def test_flights_are_judged_by_the_fit_of_others(flown: tuple[Truth, list[FlightLog]]) -> None:
    """Two parts of the flight of one drone."""
    log = in_the_air(synthetic.measured(flown[1][2], 2))
    parts = [log.between(0, 14), log.between(14, 28)]
    found = leave_one_out(parts, DRONE)
    assert len(found) == 2
    for each in found:
        assert each.before.source == "rotor speeds"
        assert each.after.distance[-1] < 0.05 < each.before.distance[-1]
        assert each.after.angle[-1] < 0.08 < each.before.angle[-1]
        assert "after 0.5 s" in str(each)
    fit = identify_rigid_body(parts[1:], DRONE)
    again = judged(parts[0], DRONE, fit)
    np.testing.assert_allclose(again.after.distance, found[0].after.distance)


def test_an_exact_flight_is_flown_again(flown: tuple[Truth, list[FlightLog]]) -> None:
    """With the true figures, from rotor speeds and from duty cycles."""
    truth, logs = flown
    values = {name: values[3] for name, values in truth.items()}
    params = with_fit(Params.create(DRONE), Fit(values, {}, 0.0))
    for log in (logs[3], replace(logs[3], rotor_vel=None)):
        errors = open_loop_errors(in_the_air(log), params, load_drone(DRONE))
        assert errors.distance[0] < 1e-3 and errors.distance[-1] < 0.02
        assert errors.angle[0] < 5e-3 and errors.angle[-1] < 0.04


def without(name: str) -> Callable[[FlightLog], FlightLog]:
    return lambda log: replace(log, rotor_vel=None, **{name: None})


def dead(log: FlightLog) -> FlightLog:
    speeds = log.rotor_vel
    assert speeds is not None
    return replace(log, rotor_vel=TimedValues(speeds.time, speeds.values * (1, 1, 0.5, 1)))


@pytest.mark.parametrize(
    ("change", "drone", "message"),
    [
        (without("pwm"), DRONE, "drone0: there are no duty cycles with a voltage"),
        (without("voltage"), DRONE, "drone0: there are no duty cycles with a voltage"),
        (without("gyro"), "hb_x500", "the drone has no voltage2thrust"),
        (dead, DRONE, r"drone0: rotor 2 was measured at \d+ RPM, the others at \d+ RPM"),
        (lambda log: log.between(0, 6), DRONE, "the flights must have 10 s in the air, got 5 s"),
    ],
)
def test_unsuitable_flights_are_refused(
    change: Callable[[FlightLog], FlightLog],
    drone: str,
    message: str,
    flown: tuple[Truth, list[FlightLog]],
) -> None:
    with pytest.raises(ValueError, match=message):
        identify_rigid_body([change(flown[1][0])], drone)


def test_what_flights_do_not_tell_stays(flown: tuple[Truth, list[FlightLog]]) -> None:
    """A drone that hovers: its thrust is told, but not its inertia and drag."""
    log = flown[1][0]
    still = np.tile([0, 0, 1, 0, 0, 0, 1.0], (2000, 1))
    time, rng = np.arange(2000) / 100, np.random.default_rng(0)
    still[:, :3] += 1e-4 * rng.normal(size=(2000, 3))
    speeds = np.full((2000, 4), 18000.0) + 20 * rng.normal(size=(2000, 4))
    hover = replace(
        log, pose=TimedValues(time, still), gyro=None, rotor_vel=TimedValues(time, speeds)
    )
    fit, known = identify_rigid_body([hover], DRONE), load_drone(DRONE)
    np.testing.assert_array_equal(fit.values["J"], np.diag(known["J"]))
    assert np.isnan(fit.deviations["J"]).all() and "(as known)" in str(fit)
    assert fit.covariance is not None and not fit.covariance[1:4].any()
    assert np.sqrt(fit.covariance[0, 0]) == pytest.approx(
        fit.deviations["thrust"] / fit.values["thrust"]
    )
    np.testing.assert_allclose(fit.values["drag_xy"], -known["drag_matrix"][0, 0])
    thrust = 4 * np.polynomial.polynomial.polyval(18000.0, known["rpm2thrust"])
    expected = known["mass"] * 9.81 / thrust
    assert fit.values["thrust"][0] == pytest.approx(expected, rel=1e-3)
