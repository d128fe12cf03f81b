"""Courses: pieces in time, one after the other, and what the governor makes of them."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from flight_helpers import sampled
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.drones import Drone
from crazyflow_ros.flight.course import ORDER, Course, Reference, evaluate
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.governor import at_velocity, shortest_turn, to_pose, to_rest

ENVELOPE = Envelope.of("cf2x_L250")
TWO = [(1.0, (0.0, 2.0)), (0.5, (2.0, 0.0, -1.0))]


def test_pieces_follow_one_another_and_the_last_one_is_rest() -> None:
    course = Course.of_pieces([TWO, [(2.0, (5.0,))], [], TWO], (7.0, 6.0, 3.0, 7.0))
    assert course.end == 2.0
    for time, x in ((0.0, 0.0), (0.75, 1.5), (1.25, 2.0 - 0.0625), (1.5, 7.0), (9.0, 7.0)):
        pos, vel, acc = course.at(time)
        np.testing.assert_allclose(pos, (x, 5.0 if time < 2 else 6.0, 3.0, x))
        assert vel[0] == (2.0 if time < 1 else 2 * (1.0 - time) if time < 1.5 else 0.0)
        assert acc[0] == (-2.0 if 1 <= time < 1.5 else 0.0)
    assert course.at(-1.0).pos[1] == 5.0  # before its begin it is what it begins with
    times = np.linspace(-1.0, 3.0, 41)
    one_by_one = [course.at(time) for time in times.tolist()]
    np.testing.assert_array_equal(np.moveaxis(course.along(times)[:3], 1, 0), one_by_one)


def test_pieces_hold_until_the_first_one_that_is_not_among_them_begins() -> None:
    course = Course.of_pieces([TWO, [(2.0, (5.0,))], [], []], (7.0, 6.0, 3.0, 0.0))
    times = (0.0, 0.99, 1.0, 1.7, 2.0, 3.0)
    untils = [[course.pieces_from(time, n)[2] for time in times] for n in (1, 2, 8)]
    # If there are no others, until the last axis is at rest: they are constant from then on.
    assert untils == [[1, 1, 1.5, 2, inf, inf], [1.5, 1.5, 2, 2, inf, inf], [2, 2, 2, 2, inf, inf]]
    coefficients, begins, _ = course.pieces_from(1.25, 2)
    np.testing.assert_array_equal(begins, ((1.0, 1.5), (0.0, 2.0), (0.0, inf), (0.0, inf)))
    np.testing.assert_array_equal(coefficients[0, :, :3], ((2.0, 0.0, -1.0), (7.0, 0.0, 0.0)))


def test_one_course_after_another_and_one_that_begins_later() -> None:
    first = Course.of_pieces([TWO, [], [], []], (2.0, 0.0, 0.0, 0.0))
    second = Course.of_pieces([[(1.0, (2.0, 1.0))], [(3.0, (0.0, 1.0))], [], []], (3.0, 3.0, 0, 0))
    both = first.then(second)
    assert both.end == 4.5
    for time in (0.3, 1.2, 1.49):
        np.testing.assert_array_equal(both.at(time), first.at(time))
    for time in (1.5, 1.9, 3.0, 4.4, 9.0):
        np.testing.assert_allclose(both.at(time), second.at(time - 1.5), atol=1e-12)
    late = second.delayed((2.0, 0.5, 0.0, 0.0))
    assert late.end == 3.5
    assert late.at(1.9).pos[0] == 2.0 and late.at(2.5).pos[0] == pytest.approx(2.5)
    assert late.at(1.5).pos[1] == pytest.approx(1.0) and not late.at(1.9).vel[0]


def test_derivatives_of_polynomials_are_those_of_numpy() -> None:
    rng = np.random.default_rng(3)
    coefficients, times = rng.normal(size=(5, ORDER)), rng.uniform(0, 2, 5)
    for row, time, found in zip(coefficients, times, evaluate(coefficients, times).T):
        polynomial = np.polynomial.Polynomial(row)
        expected = [polynomial.deriv(k)(time) if k else polynomial(time) for k in range(4)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("yaw", "goal", "expected"),
    [(0.0, 3.0, 3.0), (3.0, -3.0, 2 * np.pi - 3.0), (7.0, 0.5, 2 * np.pi + 0.5), (1.0, 99.0, None)],
)
def test_a_turn_is_the_short_way(yaw: float, goal: float, expected: float | None) -> None:
    found = shortest_turn(yaw, goal)
    assert abs(found - yaw) <= np.pi + 1e-12
    assert np.cos(found - goal) == pytest.approx(1.0)
    assert expected is None or found == pytest.approx(expected)


def assert_within(course: Course, envelope: Envelope, factor: float = 1.0) -> None:
    """Steady, and within an envelope; its horizontal bounds may be exceeded by a factor."""
    times, (pos, vel, acc) = sampled(course, 600)
    h = times[1] - times[0]
    most = {
        "speed": (np.hypot(*vel[:, :2].T), envelope.speed * factor),
        "acceleration": (np.hypot(*acc[:, :2].T), envelope.acceleration * factor),
        "climb": (np.abs(vel[:, 2]), envelope.climb),
        "lift": (np.abs(acc[:, 2]), envelope.lift),
        "yaw rate": (np.abs(vel[:, 3]), envelope.yaw_rate),
        "yaw acceleration": (np.abs(acc[:, 3]), envelope.yaw_acceleration),
        "jerk": (np.abs(np.diff(acc[:, :3], axis=0)).max(axis=1) / h, envelope.jerk * factor),
    }
    for name, (values, limit) in most.items():
        assert values.max() <= limit * (1 + 1e-6), name
    np.testing.assert_allclose(np.diff(pos, axis=0), (vel[1:] + vel[:-1]) * h / 2, atol=5 * h**3)


PLACES = st.tuples(*[st.floats(-40.0, 40.0).map(lambda x: round(x, 3))] * 3)
YAWS = st.floats(-4.0, 4.0).map(lambda x: round(x, 3))


@settings(max_examples=25)
@given(PLACES, YAWS, YAWS)
def test_from_rest_a_pose_is_reached_on_a_straight_line_within_the_envelope(
    goal: tuple[float, ...], yaw: float, turn: float
) -> None:
    start = Reference.at_rest((1.0, -2.0, 3.0), yaw)
    course = to_pose(start, goal, turn, ENVELOPE)
    assert_within(course, ENVELOPE)
    _, (pos, vel, acc) = sampled(course)
    np.testing.assert_allclose(pos[-1, :3], goal, atol=1e-9)
    assert np.cos(pos[-1, 3] - turn) == pytest.approx(1.0)
    assert not vel[-1].any() and not acc[-1].any()
    way = np.array(goal) - start.pos[:3]
    distance = np.linalg.norm(way)
    if distance > 1e-3:
        across = np.cross(pos[:, :3] - start.pos[:3], way / distance)
        assert np.abs(across).max() < 1e-6


@settings(max_examples=25)
@given(PLACES, PLACES, st.floats(0.05, 0.95))
def test_led_elsewhere_in_flight_it_goes_on_steadily(
    first: tuple[float, ...], second: tuple[float, ...], share: float
) -> None:
    """By half beyond the horizontal bounds at most, as `Envelope` says."""
    before = to_pose(Reference.at_rest((0.0, 0.0, 0.0), 0.0), first, 1.0, ENVELOPE)
    now = before.at(share * before.end)
    course = to_pose(now, second, -1.0, ENVELOPE)
    for one, other in zip(course.at(0.0), now):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert_within(course, ENVELOPE, 1.5)
    np.testing.assert_allclose(course.at(course.end).pos[:3], second, atol=1e-8)


VELOCITIES = st.tuples(*[st.floats(-5.0, 5.0).map(lambda x: round(x, 3))] * 3)


@settings(max_examples=25)
@given(VELOCITIES, VELOCITIES, YAWS, YAWS, st.floats(0.1, 2.0))
def test_sticks_of_any_size_make_a_steady_flight_that_comes_to_rest(
    first: tuple[float, ...], second: tuple[float, ...], rate: float, other: float, time: float
) -> None:
    now = Reference.at_rest((0.0, 0.0, 9.0), 0.4)
    for vel, turn in ((first, rate), (second, other)):
        course = at_velocity(now, vel, turn, 3.0, ENVELOPE)
        for one, expected in zip(course.at(0.0), now):
            np.testing.assert_allclose(one, expected, atol=1e-9)
        _, vels, accs, _ = course.along(np.linspace(0.0, time, 200))
        assert np.hypot(*vels[:, :2].T).max() <= 1.5 * ENVELOPE.speed
        assert np.hypot(*accs[:, :2].T).max() <= 2 * ENVELOPE.acceleration
        assert np.abs(vels[:, 2]).max() <= ENVELOPE.climb * (1 + 1e-9)
        assert np.abs(vels[:, 3]).max() <= ENVELOPE.yaw_rate * (1 + 1e-9)
        now = course.at(time)
    course = to_rest(now, ENVELOPE)
    assert_within(course, ENVELOPE, 2.0)
    assert not course.at(course.end).vel.any()


def test_each_drone_has_an_envelope_that_its_thrust_allows() -> None:
    for drone in Drone:
        envelope = Envelope.of(drone)
        assert all(value > 0 for value in vars(envelope).values())
        assert envelope.acceleration < 9.81 * np.tan(np.radians(20.1))
    assert Envelope.of("hb_x500").lift > Envelope.of("cf2x_L250").lift
    with pytest.raises(ValueError, match="nope"):
        Envelope.of("nope")
