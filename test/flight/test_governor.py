"""Drones of all kinds follow what the governor makes of commands of any size, in the physics."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.governor import KINDS, WIND, Case, Flight, fly
from crazyflow_ros.drones import Drone
from crazyflow_ros.flight import FlightConfig, Pose
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.governor import onto
from crazyflow_ros.flight.plan import Rules

N = 15
TILT = {0.0: 40.0, WIND: 45.0}  # degrees, as `Envelope` says
HOVERS = {0.0: 0.01, WIND: 0.1}  # m
SEEDS = {0.0: 1, WIND: 2}
GOALS = [((1, 0, 1), 0.0), ((0, 1, 1), 1.6), ((-30, 20, 1), 3.1), ((0.6, 0, 1), np.pi / 2)]
CORNERS = [Case(np.array([0.0, 0.0, 1.0]), 0.0, [(0.0, Pose(pos, yaw))]) for pos, yaw in GOALS]


def assert_good(flight: Flight, case: Case, wind: float, rules: Rules) -> None:
    assert flight.error < HOVERS[wind], case
    assert flight.overshoot < flight.allowed, case
    assert flight.tilt < np.radians(TILT[wind]), case
    assert flight.height > rules.rest_height + 0.1, case
    assert flight.turned < 0.05, case


@pytest.mark.parametrize(
    ("drone", "wind"),
    [*((drone, 0.0) for drone in Drone), ("cf2x_L250", WIND), ("cf21B_500", WIND)],
)
def test_drones_arrive_without_overshoot(drone: str, wind: float) -> None:
    """`python -m benchmark.governor` flies 1,000 cases of each.

    Corners and far goals with turns, at which the bare controller overshoots and sinks, are flown
    closely.
    """
    rng, rules = np.random.default_rng(SEEDS[wind]), Rules.of(drone, FlightConfig())
    makes = list(KINDS.values())
    cases = [makes[i % len(makes)](rng, rules) for i in range(N if not wind else N // 2)]
    corners = CORNERS if (drone, wind) == ("cf2x_L250", 0.0) else []
    flights = fly(drone, [*cases, *corners], wind)
    for flight, case in zip(flights, [*cases, *corners]):
        assert_good(flight, case, wind, rules)
    for flight in flights[len(cases) :]:
        assert flight.tracking < 0.02


@pytest.mark.parametrize("time", [0.0, 0.8])
def test_a_course_is_joined_from_another_motion(time: float) -> None:
    """Continuously, within the bounds beside it, and exactly in the end."""
    envelope = Rules.of("cf2x_T350", FlightConfig()).envelope
    coefficients = np.zeros((1, 4, 8))
    coefficients[0, :, :3] = [[2.0, 0.3, 0.1], [-1.0, 0.5, 0.0], [1.0, 0.0, 0.05], [3.0, 0.2, 0.0]]
    course = Course.of_polynomials([6.0], coefficients)
    motion = np.array([[1.2, -0.2, 1.4, -3.1], [-0.5, 0.9, 0.1, -0.4], [0.4, 0.3, 0.0, 0.0]])
    joined = onto(Reference(*motion), course, envelope, time)
    begin = joined.at(time)
    turned = begin.pos[3] - motion[0, 3]
    assert turned == pytest.approx(2 * np.pi * round(turned / (2 * np.pi)), abs=1e-9)
    np.testing.assert_allclose(begin.pos[:3], motion[0, :3], atol=1e-9)
    np.testing.assert_allclose([begin.vel, begin.acc], motion[1:], atol=1e-9)
    times = np.linspace(time, 6.0, 400)
    beside = joined.along(times) - course.along(times)
    assert np.abs(np.diff(beside[1, :, :3], axis=0)).max() < 0.02 * envelope.acceleration
    assert np.hypot(*beside[1, :, :2].T).max() < 1.5 * envelope.speed
    np.testing.assert_allclose(beside[:2, -20:], 0.0, atol=1e-9)
    there = course.at(time)
    assert onto(there, course, envelope, time) is course
