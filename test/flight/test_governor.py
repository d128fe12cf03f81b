"""Drones of all kinds follow what the governor makes of commands of any size, in the physics."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.governor import KINDS, WIND, Case, Flight, fly
from crazyflow_ros.dynamics import Drone
from crazyflow_ros.flight import FlightConfig, Pose, Rules

N = 15
TILT = {0.0: 40.0, WIND: 45.0}  # degrees, as `Envelope` says
HOVERS = {0.0: 0.01, WIND: 0.1}  # m
SEEDS = {0.0: 1, WIND: 2}


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
    """`python -m benchmark.governor` flies 1,000 cases of each."""
    rng, rules = np.random.default_rng(SEEDS[wind]), Rules.of(drone, FlightConfig())
    makes = list(KINDS.values())
    cases = [makes[i % len(makes)](rng, rules) for i in range(N if not wind else N // 2)]
    for flight, case in zip(fly(drone, cases, wind), cases):
        assert_good(flight, case, wind, rules)


def test_corners_and_far_goals_with_turns_are_flown_closely() -> None:
    """The bare controller tilts far, overshoots and sinks on the way."""
    rules = Rules.of("cf2x_L250", FlightConfig())
    start = np.array([0.0, 0.0, 1.0])
    goals = [((1, 0, 1), 0.0), ((0, 1, 1), 1.6), ((-30, 20, 1), 3.1), ((0.6, 0, 1), np.pi / 2)]
    cases = [Case(start, 0.0, [(0.0, Pose(pos, yaw))]) for pos, yaw in goals]
    for flight, case in zip(fly("cf2x_L250", cases), cases):
        assert_good(flight, case, 0.0, rules)
        assert flight.tracking < 0.02
