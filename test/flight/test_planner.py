"""Polynomials of the high-level commander: closed forms, spirals, trajectories in all ways."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from flight_helpers import DRONE, airborne, course_of, sampled
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight import (
    FlightConfig,
    FlightState,
    FlyTrajectory,
    GoTo,
    Land,
    PolynomialTrajectory,
    Setpoint,
    Spiral,
    Takeoff,
)
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.plan import Rules, StartState
from crazyflow_ros.flight.planner import segment, to_rest_at

RULES = Rules.of(DRONE, FlightConfig())
DRONES = ("cf2x_L250", "cf2x_P250", "cf2x_T350", "cf21B_500", "hb_x500")
EXACT = Rules.of(DRONE, FlightConfig(exact_durations=True))
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
    fast = Envelope(2.0, 1.0, 1e3, 1e3, 1e3, 1e6, 1e3, 1e3, 1e6)
    course = to_rest_at(Reference.at_rest((0, 0, 0), 0.0), (8.0, 0.0, 0.0), 0.0, 0.0, fast)
    assert course.end == pytest.approx(35 / 16 * 8.0 / 2.0, rel=2e-3)


def test_where_nothing_is_to_do_it_waits() -> None:
    course = to_rest_at(Reference.at_rest((1, 1, 1), 0.5), (1, 1, 1), 0.5, 3.0, ENVELOPE)
    assert course.end == 3.0
    np.testing.assert_array_equal(course.at(1.0).pos, (1, 1, 1, 0.5))


def test_takeoff_and_landing_go_straight_up_and_down() -> None:
    floor = StartState(0, Reference.at_rest((1.0, -1.0, RULES.rest_height), 0.4), FlightState.idle)
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


@pytest.mark.parametrize("drone", DRONES)
@pytest.mark.parametrize("height", [0.3, 0.8, 3.0])
def test_a_takeoff_with_an_exact_duration_leaves_most_of_the_spare_thrust(
    drone: str, height: float
) -> None:
    rules, figures = Rules.of(drone, FlightConfig(exact_durations=True)), load_drone(drone)
    place = Reference.at_rest((0.5, 0.2, rules.rest_height), 0.1)
    floor = StartState(0, place, FlightState.idle)
    spare = 4 * figures["thrust_max"] / figures["mass"] - 9.81
    for setpoint in (Takeoff(height, 0.2), Takeoff(height, velocity=10.0)):
        plan = setpoint.plan(floor, rules)
        _, (pos, _, acc) = sampled(course_of(plan), 1000)
        assert np.abs(acc[:, 2]).max() == pytest.approx(0.4 * spare, rel=0.01)
        assert pos[-1, 2] == pytest.approx(height)
        assert f"takes {course_of(plan).end:.2f} s instead of" in plan.note
    believed = place._replace(vel=np.array([0.01, -0.01, 0.02, 0.0]))  # by an estimator, on a box
    plan = Takeoff(height, 0.2).plan(replace(floor, reference=believed), rules)
    _, (_, _, acc) = sampled(course_of(plan), 1000)
    assert np.abs(acc[:, 2]).max() == pytest.approx(0.4 * spare, rel=0.05)
    gentle = Takeoff(height, 4.0).plan(floor, rules)
    assert course_of(gentle).end == 4.0 and not gentle.note
    down = Land(0.0, 0.2).plan(airborne((0.5, 0.2, height)), rules)
    assert course_of(down).end == 0.2  # from the air, nothing is late


@pytest.mark.parametrize("seed", range(40))
def test_a_go_to_under_way_stays_within_the_bounds_and_does_not_swing_out(seed: int) -> None:
    """From any motion that the governor leaves, with any time: the firmware's polynomial is not."""
    rng = np.random.default_rng(seed)
    pos = np.array([*rng.uniform(-3, 3, 2), rng.uniform(1, 4), 0.0])
    shares = rng.uniform(-0.65, 0.65, (2, 3))
    vel = np.array([*(shares[0] * (ENVELOPE.speed, ENVELOPE.speed, ENVELOPE.climb)), 0.5])
    acc = np.array([*(shares[1] * (ENVELOPE.acceleration, ENVELOPE.acceleration, 0.5)), 0.0])
    start = Reference(pos, vel, acc)
    goal, duration = (
        rng.uniform(-3, 3, 3) + np.array([0, 0, 4.0]),
        float(rng.choice([0, 0.7, 3, 12, 40])),
    )
    course = to_rest_at(start, goal, 1.0, duration, ENVELOPE)
    assert course.end >= duration
    at_once = course.at(0.0)
    assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(at_once, start))
    assert course.at(course.end + 1.0).pos[:3] == pytest.approx(goal, abs=1e-6)
    flown = course.along(np.linspace(0.0, course.end, 2000))
    # Braking on three axes at once, each by itself, may exceed the bounds of the first moment.
    assert np.hypot(*flown[1, :, :2].T).max() < 1.05 * ENVELOPE.speed
    assert np.abs(flown[1, :, 2]).max() < 1.05 * ENVELOPE.climb
    assert np.hypot(*flown[2, :, :2].T).max() < 1.3 * ENVELOPE.acceleration
    braking = 0.5 * vel[:3] ** 2 / (0.5 * ENVELOPE.lift) + 0.8 * np.abs(vel[:3])
    low, high = np.minimum(pos[:3], goal) - braking, np.maximum(pos[:3], goal) + braking
    assert (flown[0, :, :3] > low - 0.1).all() and (flown[0, :, :3] < high + 0.1).all()


def test_go_to_is_relative_to_where_the_drone_was_to_be() -> None:
    start = airborne((1.0, 2.0, 3.0), 0.2)
    course = course_of(GoTo((1.0, 0.0, -0.5), 0.3, 5.0, relative=True).plan(start, RULES))
    np.testing.assert_allclose(course.at(5.0).pos, (2.0, 2.0, 2.5, 0.5), atol=1e-9)


def test_go_to_stays_clear_of_the_floor() -> None:
    plan = GoTo((0.0, 0.0, 0.0), 0.0, 5.0).plan(airborne((0.0, 0.0, 1.0)), RULES)
    assert plan.note == "stays at 0.16 m, clear of the floor"
    assert course_of(plan).at(5.0).pos[2] == pytest.approx(RULES.rest_height + 0.15)


def test_a_turn_goes_on_as_in_the_firmware_when_go_to_interrupts_it() -> None:
    """The body rate about z of a tilted drone is less than its yaw rate."""
    tilted = Reference(np.array([0, 0, 2, 0.3]), np.array([0, 0, 0, 0.5]), np.array([3, 4, 0, 1.0]))
    now = course_of(GoTo((1, 0, 2), 0.0, 5.0).plan(StartState(0, tilted), RULES)).at(0.0)
    upright = 9.81 / np.hypot(9.81, 5.0)
    np.testing.assert_allclose(now.vel, (0, 0, 0, 0.5 * upright), atol=1e-12)
    np.testing.assert_allclose(now.acc, (3, 4, 0, 0), atol=1e-12)


def test_linear_go_to_is_a_straight_line_at_a_constant_velocity() -> None:
    start = airborne((1.0, 2.0, 3.0), 3.0)
    course = course_of(GoTo((2.0, 0.0, 4.0), -3.0, 4.0, linear=True).plan(start, RULES))
    turn = 2 * np.pi - 6.0  # the short way
    for time in (0.0, 1.3, 3.999):
        now = course.at(time)
        expected = np.array([1.0, 2.0, 3.0, 3.0]) + np.array([1.0, -2.0, 1.0, turn]) * time / 4
        np.testing.assert_allclose(now.pos, expected, atol=1e-12)
        np.testing.assert_allclose(now.vel, np.array([1.0, -2.0, 1.0, turn]) / 4, atol=1e-12)
        assert not now.acc.any()
    assert course.end == 4.0 and not course.at(4.0).vel.any()
    fast = GoTo((9.0, 2.0, 3.0), 3.0, 1.0, linear=True).plan(start, RULES)
    speed = min(0.4 * ENVELOPE.acceleration, ENVELOPE.speed)  # which it has to reach at once
    assert course_of(fast).end == pytest.approx(8.0 / speed, rel=2e-3)
    assert fast.note == f"takes {course_of(fast).end:.2f} s instead of 1 s, the fastest allowed"
    low = GoTo((1.0, 2.0, -1.0), 3.0, linear=True).plan(start, RULES)
    assert course_of(low).at(60.0).pos[2] == pytest.approx(RULES.rest_height + 0.15)


def test_a_linear_go_to_brakes_first_unless_the_drone_moves_along_it() -> None:
    most = 0.4 * ENVELOPE.acceleration  # m/s, what it can reach at once
    there = airborne((0.0, 0.0, 2.0), 0.0)
    for velocity, brakes in ((1.2, False), (-1.2, True)):
        moving = Reference.at_rest((0.0, 0.0, 2.0), 0.0)._replace(vel=np.array([velocity, 0, 0, 0]))
        start = replace(there, reference=moving)
        course = course_of(GoTo((6.0, 0.0, 2.0), 0.0, 5.0, linear=True).plan(start, RULES))
        assert course.at(0.0).vel[0] == pytest.approx(
            velocity if brakes else min(1.2, most), rel=2e-3
        )
        np.testing.assert_allclose(course.at(course.end).pos, (6.0, 0.0, 2.0, 0.0), atol=1e-9)
        vel = course.along(np.linspace(0.0, course.end - 1e-3, 2000))[1][:, 0]
        assert np.abs(np.diff(vel, prepend=velocity)).max() <= most * 1.01
        exact = course_of(GoTo((6.0, 0.0, 2.0), 0.0, 5.0, linear=True).plan(start, EXACT))
        assert exact.end == 5.0 and exact.at(0.0).vel[0] == pytest.approx(1.2)


@pytest.mark.parametrize("height", [0.6, 2.0])
def test_takeoff_and_landing_take_as_long_as_their_mean_velocity_says(height: float) -> None:
    floor = StartState(0, Reference.at_rest((0.0, 0.0, RULES.rest_height), 0.4), FlightState.idle)
    rise = course_of(Takeoff(height, velocity=0.2).plan(floor, RULES))
    assert rise.end == pytest.approx((height - RULES.rest_height) / 0.2)
    rise = course_of(Takeoff(height, velocity=0.2, relative=True).plan(floor, RULES))
    assert rise.end == pytest.approx(height / 0.2)
    assert rise.at(rise.end).pos[2] == pytest.approx(RULES.rest_height + height)
    sink = course_of(Land(0.1, velocity=0.2).plan(airborne((1, 1, height)), RULES))
    assert sink.end == pytest.approx((height - 0.1) / 0.2)
    sink = course_of(Land(0.4, velocity=0.2, relative=True).plan(airborne((1, 1, height)), RULES))
    assert sink.end == pytest.approx(2.0)
    assert sink.at(sink.end).pos[2] == pytest.approx(height - 0.4)
    plan = Takeoff(height, velocity=50.0).plan(floor, RULES)
    assert "the fastest allowed" in plan.note
    with pytest.raises(ValueError, match="duration must be within 1000 s"):
        Takeoff(height, velocity=1e-9).plan(floor, RULES)
    with pytest.raises(ValueError, match="position must be within 10000 m"):
        Takeoff(1e4, relative=True).plan(floor, RULES)


@pytest.mark.parametrize("sideways", [False, True])
@pytest.mark.parametrize("clockwise", [False, True])
@pytest.mark.parametrize("angle", [1.4, -1.4])
def test_the_ends_of_a_spiral_are_those_of_one(
    sideways: bool, clockwise: bool, angle: float
) -> None:
    """With derivatives by differences of r(t) and the angle."""
    start, yaw, radii, ascent, duration = (1.0, 2.0, 3.0), 0.3, (0.8, 0.5), -0.4, 6.0
    spiral = Spiral(angle, *radii, ascent, duration, sideways, clockwise)
    course = course_of(spiral.plan(airborne(start, yaw), RULES))
    assert course.end == duration
    # The centre, as seen from the drone: left, right, behind or ahead.
    to_centre = (
        yaw
        + {
            (False, False): np.pi / 2,
            (False, True): -np.pi / 2,
            (True, False): np.pi,
            (True, True): 0.0,
        }[sideways, clockwise]
    )
    centre = np.array(start[:2]) + radii[0] * np.array([np.cos(to_centre), np.sin(to_centre)])
    turn = -angle if clockwise else angle

    def place(time: float) -> np.ndarray:
        share = time / duration
        radius = radii[0] + (radii[1] - radii[0]) * share
        direction = to_centre + np.pi + turn * share
        x, y = centre + radius * np.array([np.cos(direction), np.sin(direction)])
        return np.array([x, y, start[2] + ascent * share, yaw + turn * share])

    h = 1e-4
    for time, now in ((0.0, course.at(0.0)), (duration, course.at(duration - 1e-9))):
        before, here, after = place(time - h), place(time), place(time + h)
        np.testing.assert_allclose(now.pos, here, atol=1e-7)
        np.testing.assert_allclose(now.vel, (after - before) / (2 * h), atol=1e-6)
        np.testing.assert_allclose(now.acc, (after - 2 * here + before) / h**2, atol=1e-5)
    if not sideways:  # it flies ahead, or backwards
        vel = course.at(0.0).vel
        assert (vel[0] * np.cos(yaw) + vel[1] * np.sin(yaw)) * angle > 0
    away = [np.hypot(*(course.at(t).pos[:2] - centre)) for t in np.linspace(0, duration, 30)]
    np.testing.assert_allclose(away, np.linspace(*radii, 30), atol=0.02)


def test_a_spiral_is_kept_within_what_the_firmware_and_the_drone_can_fly() -> None:
    start = airborne((0.0, 0.0, 1.0))
    plan = Spiral(9.0, 0.5, -1.0, duration=20.0).plan(start, RULES)
    assert plan.note == "turns by 6.28 rad at radii of 0.5 to 0 m"
    assert course_of(plan).at(19.999999).pos[3] == pytest.approx(2 * np.pi, abs=1e-5)
    plan = Spiral(-3.0, 1.0, 1.0, -5.0, 0.1).plan(start, RULES)
    assert plan.note.startswith("stays at 0.16 m, clear of the floor; takes ")
    course = course_of(plan)
    assert course.at(course.end).pos[2] == pytest.approx(RULES.rest_height + 0.15)
    _, (_, vel, acc) = sampled(course, beyond=0.0)
    assert np.hypot(*vel[:, :2].T).max() <= 1.01 * ENVELOPE.speed
    assert np.abs(vel[:, 3]).max() <= 1.01 * ENVELOPE.yaw_rate
    assert np.hypot(*acc[:, :2].T).max() <= 1.01 * ENVELOPE.acceleration
    with pytest.raises(ValueError, match="positions must be within 10000 m"):
        Spiral(3.0, 9e3, 9e3).plan(start, RULES)


@pytest.mark.parametrize("setpoint", [GoTo((0, 0, 1), 0.0, linear=True), Spiral(1.0, 1.0, 1.0)])
def test_they_need_a_drone_in_the_air(setpoint: Setpoint) -> None:
    floor = StartState(0, Reference.at_rest((0.0, 0.0, RULES.rest_height), 0.4), FlightState.idle)
    with pytest.raises(ValueError, match="needs a drone in the air, it is idle: takeoff first"):
        setpoint.plan(floor, RULES)


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
    plan = FlyTrajectory(trajectory, timescale, backwards, relative).plan(start, EXACT)
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


def test_a_relative_yaw_turns_a_trajectory_about_its_origin() -> None:
    coefficients = pieces()
    coefficients[:, :3, 0] -= coefficients[0, :3, 0]
    trajectory = PolynomialTrajectory(DURATIONS, coefficients)
    start, begin = airborne((3.0, 2.0, 9.0), 2.5), float(coefficients[0, 3, 0])
    turned = course_of(FlyTrajectory(trajectory, relative_yaw=True).plan(start, EXACT))
    c, s = np.cos(2.5 - begin), np.sin(2.5 - begin)
    for time in np.linspace(0.0, 3.4, 20):
        (x, y, z, yaw), _ = expected(coefficients, time)
        pos = (3 + c * x - s * y, 2 + s * x + c * y, 9 + z, yaw + 2.5 - begin)
        np.testing.assert_allclose(turned.at(time).pos, pos, atol=1e-9)
    for plain in (
        FlyTrajectory(trajectory, reversed=True),
        FlyTrajectory(trajectory, relative=False),
    ):
        near = airborne((0.0, 0.0, 0.0), 2.5)
        plan = replace(plain, relative_yaw=True).plan(near, RULES)
        assert plan.note == "ignores relative_yaw: the trajectory is reversed or not relative"
        same = plain.plan(near, RULES)
        np.testing.assert_array_equal(course_of(plan).at(1.2).pos, course_of(same).at(1.2).pos)
    far = np.array(coefficients)
    far[:, 0, 0] += 1.0
    with pytest.raises(ValueError, match="turns it about its origin, where it has to start"):
        FlyTrajectory(PolynomialTrajectory(DURATIONS, far), relative_yaw=True).plan(start, RULES)


def bezier(points: np.ndarray, share: float) -> float:
    """A point of a Bezier curve, by de Casteljau's algorithm."""
    while len(points) > 1:
        points = points[:-1] + share * np.diff(points)
    return float(points[0])


def test_compressed_trajectories_are_bezier_curves() -> None:
    rng = np.random.default_rng(3)
    at, unit = np.array([1500, -700, 2000, -900]), np.array([1e-3, 1e-3, 1e-3, np.pi / 1800])
    data, curves = b"\x55" * 7 + at.astype("<i2").tobytes(), []
    for kinds, milliseconds in (((1, 2, 3, 0), 700), ((0, 0, 0, 3), 65535), ((3, 3, 2, 1), 40)):
        data += struct.pack("<BH", int(np.dot(kinds, (1, 4, 16, 64))), milliseconds)
        for axis, kind in enumerate(kinds):
            points = rng.integers(at[axis] - 9, at[axis] + 9, (0, 1, 3, 7)[kind])
            data += points.astype("<i2").tobytes()
            curves.append(np.append(at[axis], points) * unit[axis])
            at[axis] = (at[axis], *points)[-1]
    data += b"\xff\0\0 what follows in the memory"
    trajectory = PolynomialTrajectory.of_compressed(data, 7)
    np.testing.assert_allclose(trajectory.durations, (0.7, 65.535, 0.04))
    for k, duration in enumerate((0.7, 65.535, 0.04)):
        for axis in range(4):
            polynomial = Polynomial(np.asarray(trajectory.coefficients)[k, axis])
            for share in (0.0, 0.3, 1.0):
                value = bezier(curves[4 * k + axis], share)
                assert polynomial(share * duration) == pytest.approx(value, abs=1e-9)
    for offset in (-1, len(data) - 7, 10**9):
        with pytest.raises(ValueError, match=f"expected . bytes at {offset}, got {len(data)}"):
            PolynomialTrajectory.of_compressed(data, offset)
    with pytest.raises(ValueError, match=r"compressed trajectory: expected 2 bytes at 11, got 12"):
        PolynomialTrajectory.of_compressed(bytes(8) + b"\x01\1\0\0")
    with pytest.raises(ValueError, match="a trajectory has 1 to 1361 pieces, got 0"):
        PolynomialTrajectory.of_compressed(bytes(11))


def test_the_longest_compressed_trajectory_fills_the_memory() -> None:
    data = bytes(8) + b"\0\1\0" * 1361 + bytes(3)
    assert 4096 - 3 < len(data) <= 4096
    trajectory = PolynomialTrajectory.of_compressed(data)
    assert course_of(FlyTrajectory(trajectory).plan(airborne((0, 0, 1)), RULES)).end == (
        pytest.approx(1.361)
    )


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
