"""Polynomials of the high-level commander: closed forms, scaled, reversed and relative."""

from __future__ import annotations

import numpy as np
import pytest
from flight_helpers import DRONE, airborne, course_of, sampled
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.flight import (
    Envelope,
    FlightConfig,
    FlightState,
    FlyTrajectory,
    GoTo,
    Land,
    PolynomialTrajectory,
    Reference,
    Rules,
    Start,
    Takeoff,
)
from crazyflow_ros.flight.planner import segment, to_rest_at

RULES = Rules.of(DRONE, FlightConfig())
ENVELOPE = RULES.envelope
Polynomial = np.polynomial.Polynomial


def smooth(u: np.ndarray) -> np.ndarray:
    """From 0 to 1 with velocity, acceleration and jerk of zero at both ends."""
    return 35 * u**4 - 84 * u**5 + 70 * u**6 - 20 * u**7


def test_from_rest_to_rest_is_the_known_polynomial() -> None:
    start, goal = airborne((1.0, 2.0, 3.0), 0.2), np.array([2.0, 1.5, 3.5])
    course = course_of(GoTo(goal, 0.9, duration=4.0).plan(start, RULES))
    assert course.end == 4.0
    for time in np.linspace(0.0, 4.0, 41):
        w = smooth(time / 4.0)
        pos = course.at(time).pos
        np.testing.assert_allclose(pos[:3], (1, 2, 3) + (goal - (1, 2, 3)) * w, atol=1e-9)
        assert pos[3] == pytest.approx(0.2 + 0.7 * w, abs=1e-9)


def test_segments_join_any_two_motions_with_no_jerk_at_their_ends() -> None:
    rng = np.random.default_rng(5)
    for duration in (0.3, 1.0, 7.0):
        start, end = (Reference(*rng.normal(size=(3, 4))) for _ in range(2))
        for i, row in enumerate(segment(start, end, duration)):
            polynomial = Polynomial(row)
            for k in range(3):
                derivative = polynomial.deriv(k) if k else polynomial
                assert derivative(0.0) == pytest.approx(start[k][i], abs=1e-9)
                assert derivative(duration) == pytest.approx(end[k][i], abs=1e-8)
            assert polynomial.deriv(3)(0.0) == pytest.approx(0.0, abs=1e-9)
            assert polynomial.deriv(3)(duration) == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=25)
@given(
    st.tuples(*[st.floats(-20.0, 20.0)] * 3),
    st.floats(-3.0, 3.0),
    st.floats(0.0, 20.0),
    st.tuples(*[st.floats(-0.8, 0.8)] * 3),
)
def test_too_short_a_time_is_stretched_until_the_envelope_allows_it(
    goal: tuple[float, ...], yaw: float, duration: float, share: tuple[float, ...]
) -> None:
    vel = np.array([*np.array(share) * (0.7 * ENVELOPE.speed, 0.7 * ENVELOPE.speed, 1.0), 0.0])
    start = Reference(np.array([0.0, 0.0, 5.0, 0.0]), vel, np.zeros(4))
    course = to_rest_at(start, goal, yaw, duration, ENVELOPE)
    assert course.end >= duration
    _, (pos, vel, acc) = sampled(course, 300)
    np.testing.assert_allclose(pos[-1], (*goal, yaw), atol=1e-7)
    assert np.hypot(*vel[:, :2].T).max() <= 1.01 * ENVELOPE.speed
    assert np.abs(vel[:, 2]).max() <= 1.01 * ENVELOPE.climb
    assert np.hypot(*acc[:, :2].T).max() <= 1.01 * ENVELOPE.acceleration
    assert np.abs(acc[:, 2]).max() <= 1.01 * ENVELOPE.lift


def test_from_rest_the_shortest_time_is_known() -> None:
    """The steepest slope of the polynomial is 35/16, where it is half-way."""
    fast = Envelope(2.0, 1.0, 1e3, 1e3, 1e6, 1e3, 1e3, 1e6)
    course = to_rest_at(Reference.at_rest((0, 0, 0), 0.0), (8.0, 0.0, 0.0), 0.0, 0.0, fast)
    assert course.end == pytest.approx(35 / 16 * 8.0 / 2.0, rel=2e-3)


def test_where_nothing_is_to_do_it_waits() -> None:
    course = to_rest_at(Reference.at_rest((1, 1, 1), 0.5), (1, 1, 1), 0.5, 3.0, ENVELOPE)
    assert course.end == 3.0
    np.testing.assert_array_equal(course.at(1.0).pos, (1, 1, 1, 0.5))


def test_takeoff_and_landing_go_straight_up_and_down() -> None:
    floor = Start(0, Reference.at_rest((1.0, -1.0, RULES.rest_height), 0.4), FlightState.idle)
    plan = Takeoff(1.0, 3.0).plan(floor, RULES)
    assert (plan.during, plan.after) == (FlightState.taking_off, FlightState.flying)
    up = course_of(plan)
    for time in (0.5, 1.5, 2.9):
        height = RULES.rest_height + (1.0 - RULES.rest_height) * smooth(time / 3.0)
        np.testing.assert_allclose(up.at(time).pos, (1.0, -1.0, height, 0.4), atol=1e-9)
    plan = Land(0.0, 4.0, yaw=0.0).plan(airborne((2.0, 2.0, 1.0), 0.4), RULES)
    assert (plan.during, plan.after) == (FlightState.landing, FlightState.landed)
    np.testing.assert_allclose(
        course_of(plan).at(4.0).pos, (2.0, 2.0, RULES.rest_height, 0.0), atol=1e-9
    )
    note = Takeoff(9.0, 0.5).plan(floor, RULES).note
    assert "instead of 0.5 s, the fastest allowed" in note


def test_go_to_is_relative_to_where_the_drone_was_to_be() -> None:
    start = airborne((1.0, 2.0, 3.0), 0.2)
    course = course_of(GoTo((1.0, 0.0, -0.5), 0.3, 5.0, relative=True).plan(start, RULES))
    np.testing.assert_allclose(course.at(5.0).pos, (2.0, 2.0, 2.5, 0.5), atol=1e-9)


def test_go_to_stays_clear_of_the_floor() -> None:
    plan = GoTo((0.0, 0.0, 0.0), 0.0, 5.0).plan(airborne((0.0, 0.0, 1.0)), RULES)
    assert plan.note == "stays at 0.16 m, clear of the floor"
    assert course_of(plan).at(5.0).pos[2] == pytest.approx(RULES.rest_height + 0.15)


# Trajectories.

DURATIONS = np.array([1.0, 0.5, 2.0])


def pieces(seed: int = 1) -> np.ndarray:
    """Pieces that begin where the one before ends, but for that with any derivatives."""
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=(3, 4, 8)) / 3.0 ** np.arange(8)
    for k in (1, 2):
        for i in range(4):
            before = Polynomial(coefficients[k - 1, i])(DURATIONS[k - 1])
            coefficients[k, i, 0] = before
    return coefficients


def expected(coefficients: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity at a time, by another way; (4,) each."""
    ends = np.cumsum(DURATIONS)
    k = min(int(np.searchsorted(ends, time, side="right")), 2)
    since = time - (ends[k] - DURATIONS[k])
    polynomials = [Polynomial(row) for row in coefficients[k]]
    return np.array([p(since) for p in polynomials]), np.array(
        [p.deriv()(since) for p in polynomials]
    )


@pytest.mark.parametrize("timescale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("relative", [False, True])
def test_trajectories_scaled_reversed_and_relative(
    timescale: float, backwards: bool, relative: bool
) -> None:
    coefficients, total = pieces(), float(DURATIONS.sum())
    begin = expected(coefficients, total - 1e-12 if backwards else 0.0)[0]
    if backwards:
        begin = np.array([Polynomial(row)(DURATIONS[-1]) for row in coefficients[-1]])
    start = airborne((3.0, 2.0, 9.0), 0.7) if relative else airborne(begin[:3], begin[3])
    shift = np.append(start.reference.pos[:3] - begin[:3], 0.0) if relative else np.zeros(4)
    trajectory = PolynomialTrajectory(DURATIONS, coefficients)
    plan = FlyTrajectory(trajectory, timescale, backwards, relative).plan(start, RULES)
    course = course_of(plan)
    assert course.end == pytest.approx(total * timescale) and not plan.bounded
    for time in np.linspace(0.001, 0.999 * total, 50):
        there = total - time if backwards else time
        pos, vel = expected(coefficients, there)
        found = course.at(time * timescale)
        np.testing.assert_allclose(found.pos, pos + shift, atol=1e-9)
        sign = -1 if backwards else 1
        np.testing.assert_allclose(found.vel, sign * vel / timescale, atol=1e-8)
    last = course.at(course.end + 5.0)
    assert not last.vel.any() and not last.acc.any()
    goal = expected(coefficients, 0.0 if backwards else total)[0]
    np.testing.assert_allclose(last.pos, goal + shift, atol=1e-9)


def test_trajectories_that_cannot_be_flown_are_refused() -> None:
    trajectory, start = PolynomialTrajectory(DURATIONS, pieces()), airborne((9.0, 9.0, 9.0))
    for timescale in (0.0, -1.0, 1e-3, 1e3, float("nan")):
        with pytest.raises(ValueError, match="timescale"):
            FlyTrajectory(trajectory, timescale).plan(start, RULES)
    with pytest.raises(ValueError, match=r"starts .* m from the reference position"):
        FlyTrajectory(trajectory, relative=False).plan(start, RULES)
    wild = np.zeros((1, 4, 8))
    wild[0, 0, 1:3] = 1.0, 1e6
    with pytest.raises(ValueError, match="positions must be within"):
        FlyTrajectory(PolynomialTrajectory([1.0], wild)).plan(start, RULES)
