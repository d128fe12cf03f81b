"""Jerk-limited profiles: closed forms, an optimum found by other means, bounds, end states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from crazyflow_ros.flight.profile import (
    AxisState,
    Bounds,
    Phase,
    Profile,
    end_of,
    to_position,
    to_velocity,
)

BOUNDS = Bounds(vel=2.0, acc=2.5, jerk=10.0)


def duration(profile: Profile) -> float:
    return sum(phase.duration for phase in profile)


def motion(start: AxisState, profile: Profile, n: int = 40) -> np.ndarray:
    """(3, m) position, velocity, acceleration, n points of each phase."""
    points = []
    for phase in profile:
        for t in np.linspace(0.0, phase.duration, n):
            points.append(start.after(Phase(float(t), phase.jerk)))
        start = start.after(phase)
    return np.array(points).reshape(-1, 3).T


def rest_to_rest(distance: float, bounds: Bounds) -> float:
    """Time of the S-curve, from the textbook's four cases."""
    vel, acc, jerk = bounds
    if vel * jerk < acc * acc:  # the acceleration that is reached on the way to the speed
        acc = math.sqrt(vel * jerk)
    if distance >= vel * (vel / acc + acc / jerk):
        return distance / vel + vel / acc + acc / jerk
    if distance >= 2 * acc**3 / jerk**2:
        return acc / jerk + math.sqrt((acc / jerk) ** 2 + 4 * distance / acc)
    return 4 * math.cbrt(distance / (2 * jerk))


@pytest.mark.parametrize("bounds", [BOUNDS, Bounds(0.5, 3.0, 8.0), Bounds(9.0, 1.0, 30.0)])
@pytest.mark.parametrize("distance", [1e-6, 0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 30.0, 1e4])
def test_from_rest_to_rest_takes_the_time_of_the_s_curve(distance: float, bounds: Bounds) -> None:
    for side in (1.0, -1.0):
        profile = to_position(AxisState(3.0, 0.0, 0.0), 3.0 + side * distance, bounds)
        assert duration(profile) == pytest.approx(rest_to_rest(distance, bounds), rel=1e-6)


@pytest.mark.parametrize("change", [1e-6, 0.1, 0.5, 0.625, 1.0, 4.0])
def test_a_change_of_the_velocity_takes_a_trapezium_or_a_triangle(change: float) -> None:
    _, acc, jerk = BOUNDS
    reached = change >= acc * acc / jerk
    expected = change / acc + acc / jerk if reached else 2 * math.sqrt(change / jerk)
    for side in (1.0, -1.0):
        profile = to_velocity(AxisState(0.0, 0.3, 0.0), 0.3 + side * change, BOUNDS)
        assert duration(profile) == pytest.approx(expected)


def test_nothing_to_do_takes_no_time() -> None:
    assert to_position(AxisState(1.5, 0.0, 0.0), 1.5, BOUNDS) == []
    assert duration(to_velocity(AxisState(1.5, 0.7, 0.0), 0.7, BOUNDS)) == 0.0


N = 40


def least_time(start: AxisState, goal: AxisState, bounds: Bounds, *, free: bool = False) -> float:
    """The shortest time of a motion with N steps of constant jerk, by linear programming.

    Args:
        start: Where it begins.
        goal: Where it is to end.
        bounds: Limits.
        free: The position at the end, and the velocity on the way, do not matter.
    """

    def possible(time: float) -> bool:
        h = time / N
        step = np.array([[1, h, h * h / 2], [0, 1, h], [0, 0, 1]])
        push = np.array([h**3 / 6, h * h / 2, h])
        free_motion, forced = np.array(start), np.zeros((3, N))
        limits, values = [], []
        for k in range(N):
            free_motion, forced = step @ free_motion, step @ forced
            forced[:, k] += push
            for row, most in ((2, bounds.acc), (1, bounds.vel)):
                if row == 1 and free:
                    continue
                for sign in (1, -1):
                    limits.append(sign * forced[row].copy())
                    values.append(most + 1e-9 - sign * free_motion[row])
        rows = slice(1, 3) if free else slice(0, 3)
        found = linprog(
            np.zeros(N),
            A_ub=np.array(limits),
            b_ub=np.array(values),
            A_eq=forced[rows],
            b_eq=(np.array(goal) - free_motion)[rows],
            bounds=(-bounds.jerk, bounds.jerk),
        )
        return bool(found.status == 0)

    low, high = 0.0, 1.0
    while not possible(high):
        low, high = high, 2 * high
    while high - low > 2e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if possible(middle) else (middle, high)
    return high


@pytest.mark.parametrize(
    ("vel", "acc", "goal"),
    [(0.0, 0.0, 1.0), (1.5, -1.0, -1.8), (-0.4, 2.4, -0.3), (1.0, 2.0, 1.1), (-2.0, 0.0, 2.0)],
)
def test_no_motion_reaches_a_velocity_sooner(vel: float, acc: float, goal: float) -> None:
    start = AxisState(0.0, vel, acc)
    least = least_time(start, AxisState(0.0, goal, 0.0), BOUNDS, free=True)
    assert duration(to_velocity(start, goal, BOUNDS)) == pytest.approx(least, rel=0.02)


@pytest.mark.parametrize(
    ("vel", "acc", "goal"),
    [
        (0.0, 0.0, 1.0),
        (1.5, 0.0, 4.0),
        (-1.5, 0.0, 2.0),
        (-1.0, -1.5, -3.0),
        (2.0, 0.0, -1.0),
        (0.5, 2.0, 0.1),
    ],
)
def test_hardly_any_motion_reaches_a_place_sooner(vel: float, acc: float, goal: float) -> None:
    start = AxisState(0.0, vel, acc)
    least = least_time(start, AxisState(goal, 0.0, 0.0), BOUNDS)
    assert 0.98 * least <= duration(to_position(start, goal, BOUNDS)) <= 1.02 * least


def numbers(most: float) -> st.SearchStrategy[float]:
    return st.floats(-most, most).map(lambda x: round(x, 6))


BOUNDS_OF_ANY_SIZE = st.builds(
    lambda vel, acc, fades: Bounds(vel, acc, acc / fades),
    st.floats(0.1, 10.0),
    st.floats(0.1, 20.0),
    st.floats(0.02, 1.0),
)
SHARES = st.tuples(numbers(1.0), numbers(1.0))


def start_of(shares: tuple[float, float], bounds: Bounds) -> AxisState:
    return AxisState(1.0, shares[0] * bounds.vel, shares[1] * bounds.acc)


@settings(max_examples=150)
@given(BOUNDS_OF_ANY_SIZE, SHARES, numbers(1.0))
def test_a_velocity_is_reached_within_the_bounds(
    bounds: Bounds, shares: tuple[float, float], share: float
) -> None:
    start, vel = start_of(shares, bounds), share * bounds.vel
    profile = to_velocity(start, vel, bounds)
    _, end, acc = end_of(start, profile)
    assert end == pytest.approx(vel, abs=1e-9) and acc == pytest.approx(0.0, abs=1e-9)
    assert all(p.duration >= 0 and abs(p.jerk) <= bounds.jerk for p in profile)
    assert np.abs(motion(start, profile)[2]).max() <= bounds.acc * (1 + 1e-9)


@settings(max_examples=150)
@given(BOUNDS_OF_ANY_SIZE, SHARES, numbers(50.0))
def test_a_place_is_reached_within_the_bounds(
    bounds: Bounds, shares: tuple[float, float], goal: float
) -> None:
    start = start_of(shares, bounds)
    profile = to_position(start, goal, bounds)
    end = end_of(start, profile)
    scale = max(1.0, abs(goal))
    assert end.pos == pytest.approx(goal, abs=1e-9 * scale)
    assert end.vel == pytest.approx(0.0, abs=1e-9) and end.acc == pytest.approx(0.0, abs=1e-9)
    assert all(p.duration >= 0 and abs(p.jerk) <= bounds.jerk for p in profile)
    if profile:
        _, vel, acc = motion(start, profile)
        assert np.abs(acc).max() <= bounds.acc * (1 + 1e-9)
        # The acceleration at the begin may carry it beyond before it has faded.
        fading = abs(start.vel + start.acc * abs(start.acc) / (2 * bounds.jerk))
        assert np.abs(vel).max() <= max(bounds.vel, fading) * (1 + 1e-9) + 1e-9


@settings(max_examples=50)
@given(numbers(30.0), numbers(60.0), numbers(30.0))
def test_from_beyond_the_bounds_it_comes_back_within_them(
    vel: float, acc: float, goal: float
) -> None:
    start = AxisState(0.0, vel, acc)
    end = end_of(start, to_position(start, goal, BOUNDS))
    assert end.pos == pytest.approx(goal, abs=1e-7) and end.vel == pytest.approx(0.0, abs=1e-8)


@settings(max_examples=50)
@given(st.floats(0.05, 20.0), st.floats(0.0, 1.0))
def test_a_place_ahead_is_not_passed(distance: float, share: float) -> None:
    """Planned anew half-way, it ends at the same place at the same time."""
    start = AxisState(0.0, 0.0, 0.0)
    profile = to_position(start, distance, BOUNDS)
    assert motion(start, profile)[0].max() <= distance + 1e-9
    left, half = share * duration(profile), start
    for phase in profile:
        half = half.after(Phase(min(left, phase.duration), phase.jerk))
        left -= min(left, phase.duration)
    again = to_position(half, distance, BOUNDS)
    if again:
        assert motion(half, again)[0].max() <= distance + 1e-7
    total = share * duration(profile) + duration(again)
    assert total == pytest.approx(duration(profile), abs=1e-3)
