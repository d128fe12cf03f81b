"""Costs of a step: values by hand, and velocities at which they are least."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from crazyflow_ros.learn.costs import Approach, Carriage, Cost, Descent, Passage
from crazyflow_ros.learn.ready import READY
from crazyflow_ros.policy.observation import Motion

Vector = tuple[float, float, float]


def at(pos: Vector, vel: Vector | Array, goal_vel: Vector = (0, 0, 0)) -> Motion:
    """A level drone whose goal is at the origin."""
    zero, quat = np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]])
    motion = (np.array([pos]), quat, jnp.asarray(vel)[None], zero, np.zeros((1, 4)))
    return Motion(*motion, zero, np.array([goal_vel]), zero, np.zeros((1, 4)))


def cost_of(cost: Cost, *given: Vector) -> float:
    motion = at(*given)
    return float(cost(motion, motion)[0])


def slope(cost: Cost, pos: Vector, vel: Vector, goal_vel: Vector = (0, 0, 0)) -> np.ndarray:
    """Derivatives of a cost by the velocity, (3,)."""

    def of(vel: Array) -> Array:
        motion = at(pos, vel, goal_vel)
        return cost(motion, motion)[0]

    return np.asarray(jax.grad(of)(jnp.array(vel)))


def test_the_cost_of_an_approach_is_that_of_distance_and_slip() -> None:
    # At rest 3 m away: the approach is 3.7 * 3 / sqrt(1 + 1.3 * 9) m/s fast. Lengths are those of
    # a hyperbola: sqrt(x^2 + width^2) - width.
    approach = 3.7 * 3 / np.sqrt(12.7)
    expected = np.hypot(3, 0.02) - 0.02 + 0.4 * (np.hypot(approach, 0.1) - 0.1)
    assert cost_of(Approach(), (0.0, 3.0, 0.0), (0.0, 0.0, 0.0)) == pytest.approx(expected)
    towards = (1.0, -approach, 0.0)  # beside a goal that flies east
    east = (1.0, 0.0, 0.0)
    distance = np.hypot(3, 0.02) - 0.02
    assert cost_of(Approach(), (0.0, 3.0, 0.0), towards, east) == pytest.approx(distance)
    np.testing.assert_allclose(slope(Approach(), (0.0, 3.0, 0.0), towards, east), 0, atol=1e-5)


def test_the_cost_of_a_carriage_is_that_of_the_load() -> None:
    """Wherever the drone is; swinging costs more."""
    pos, vel, zero = (0.3, 1.0, 0.6), (0.1, -0.2, 0.0), (0.0, 0.0, 0.0)
    above = at((5.0, 5.0, 5.0), vel)._replace(load=np.array([pos]), load_vel=np.array([vel]))
    cost, own = Carriage(sway=0.2), cost_of(Approach(), pos, vel)
    assert float(cost(above, above)[0]) == pytest.approx(own, abs=1e-6)
    still = above._replace(vel=np.array([zero]))
    swing = np.hypot(np.linalg.norm(vel), 0.1) - 0.1
    assert float(cost(still, still)[0]) == pytest.approx(own + 0.2 * swing, abs=1e-6)


@pytest.mark.parametrize(("height", "expected"), [(0.5, 0.0), (0.3, 0.0), (0.1, 1.4), (0.0, 2.1)])
def test_drones_that_are_low_cost_more(height: float, expected: float) -> None:
    plain, low = Approach(), Approach(low=7.0, clearance=0.3)
    given = (0.0, 1.0, height), (0.5, 0.0, 0.0)
    assert cost_of(low, *given) - cost_of(plain, *given) == pytest.approx(expected, abs=1e-5)


def test_the_cost_of_turning_is_that_of_rates_heading_and_changes_of_action() -> None:
    before = at((0, 0, 0), (0, 0, 0))
    north = np.array([[0, 0, np.sqrt(0.5), np.sqrt(0.5)]])
    changes = {"ang_vel": np.array([[1.0, 2, 2]]), "quat": north, "action": np.full((1, 4), 0.5)}
    after = before._replace(**changes)
    assert float(Approach()(before, after)[0]) == pytest.approx(0.001 * 9 + 0.02 + 0.01)


@pytest.mark.parametrize("pos", [(0, 0, 0), (0.3, -0.2, 1.0), (5, 5, -5)])
def test_the_cost_of_a_velocity_is_that_of_the_difference_wherever_the_goal_is(pos: Vector) -> None:
    cost, wanted = READY["velocity"].cost, (0.5, -1.0, 0.2)
    assert cost_of(cost, pos, wanted, wanted) == pytest.approx(0, abs=1e-6)
    expected = np.hypot(0.4, 0.1) - 0.1
    assert cost_of(cost, pos, (0.5, -1.0, 0.6), wanted) == pytest.approx(expected, rel=1e-4)
    # Far off, the slope is the direction of the difference.
    gradient = slope(cost, pos, (0.5, 9.0, 0.2), wanted)
    np.testing.assert_allclose(gradient, [0, 1, 0], atol=1e-3)


@pytest.mark.parametrize("height", [0.0, 0.2, 1.3])
def test_a_descent_is_slow_at_the_floor_and_towards_the_line_above_the_goal(height: float) -> None:
    cost = Descent(speed=0.25, sink=1.5, glide=0.4, rate=3.0, aside=2.0)
    down: Vector = (0.0, 0.0, -0.25 - 1.5 * height)
    assert cost_of(cost, (0.0, 0.0, height), down) == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(slope(cost, (0.0, 0.0, height), down), 0, atol=1e-5)
    # 0.75 m aside the best velocity is 3 * 0.75 / sqrt(1 + 0.75^2) = 1.8 m/s towards the line.
    # The glide path is 0.4 * (hypot(0.75, 0.1) - 0.1) high there.
    best = (-1.8, 0.0, down[2] + 1.5 * 0.4 * (np.hypot(0.75, 0.1) - 0.1))
    aside = 2.0 * (np.hypot(0.75, 0.02) - 0.02)
    assert cost_of(cost, (0.75, 0.0, height), best) == pytest.approx(aside, rel=1e-5)
    np.testing.assert_allclose(slope(cost, (0.75, 0.0, height), best), 0, atol=1e-5)


def test_the_cost_of_a_passage_is_least_towards_the_line_through_the_goal() -> None:
    cost, east = Passage(), (2.0, 0.0, 0.0)
    assert cost_of(cost, (-2.0, 0, 0), east, east) == pytest.approx(0, abs=1e-3)
    outwards, along, inwards = (
        cost_of(cost, (-2.0, 1.0, 0.0), (1.6, y, 0), east) for y in (1.2, 0.0, -1.2)
    )
    assert inwards < along < outwards
