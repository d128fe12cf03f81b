"""Tasks: where episodes begin, and what is rewarded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flights_of_tasks import flight_of
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.envs import Hover, Race, Recovery, Task, Velocity
from crazyflow_ros.envs.task import CourseTask, Flight

N = 500


def flight(pos: object, origin: object, goal: object = (0.0, 0.0, 0.0)) -> Flight:
    pos, origin = jnp.atleast_2d(jnp.asarray(pos)), jnp.atleast_2d(jnp.asarray(origin))
    return flight_of(pos, jnp.asarray(goal) - pos, origin)


def test_recoveries_begin_in_any_attitude() -> None:
    start = Recovery().begin(jax.random.key(0), N)
    np.testing.assert_allclose(jnp.linalg.norm(start.quat, axis=-1), 1, atol=1e-6)
    x, y, z, w = start.quat.T
    up = np.array(1 - 2 * (x * x + y * y))
    assert up.min() < -0.99 and up.max() > 0.99 and (up < 0).mean() > 0.4
    heading = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    assert np.histogram(heading, 4, (-np.pi, np.pi))[0].min() > N / 8
    # The directions of the z axis are uniform on the sphere, and so are their heights.
    np.testing.assert_allclose(np.sort(up), np.linspace(-1, 1, N), atol=0.15)
    rotors = Recovery(rotor_vel=(5e3, 2e4)).begin(jax.random.key(0), N).rotor_vel
    assert 5e3 <= rotors.min() < 6e3 and 1.9e4 < rotors.max() <= 2e4
    assert abs(np.array(start.vel)).max() <= 1 and abs(np.array(start.ang_vel)).max() <= 2
    upright = Recovery(angle=0.1).begin(jax.random.key(0), N).quat
    assert (1 - 2 * (upright[:, 0] ** 2 + upright[:, 1] ** 2)).min() > np.cos(0.11)
    with pytest.raises(ValueError, match=r"Recovery: angle .*4"):
        Recovery(angle=4)


def test_goals_of_velocities_move() -> None:
    task = Velocity(speed=(1.0, 2.0, 0.0))
    pos, origin = task.begin(jax.random.key(0), 3)
    goal, vel = task.goal(origin, jnp.full((3, 1), 2.0))
    np.testing.assert_allclose(goal, pos + 2 * vel, rtol=1e-6)
    assert (vel[:, 2] == 0).all() and (abs(vel[:, 1]) <= 2).all()


def test_hovering_is_rewarded_near_the_point() -> None:
    at, near, lost, down = [0.0, 0, 1], [0.5, 0, 1], [3.0, 0, 1], [0.0, 0, -0.001]
    now = flight([at, near, lost, down], [[0.0, 0, 1]] * 4, (0.0, 0, 1))
    verdict = Hover().judge(now, now)
    np.testing.assert_allclose(verdict.reward[:2], [1, np.exp(-1)], rtol=1e-6)
    assert (verdict.reward[2:] < 0).all()
    assert verdict.terminated.tolist() == [False, False, True, True]
    assert verdict.success.tolist() == [True, False, False, False]


@settings(deadline=None, max_examples=60)
@given(
    gate=st.integers(0, 6),
    aside=st.floats(-0.8, 0.8),
    up=st.floats(-0.8, 0.8),
    ahead=st.floats(0.01, 0.3),
    behind=st.floats(0.01, 0.3),
    backwards=st.booleans(),
)
def test_a_gate_counts_where_it_is_open(
    gate: int, aside: float, up: float, ahead: float, behind: float, backwards: bool
) -> None:
    race = Race()
    assert isinstance(race, CourseTask) and isinstance(race, Task)
    along, left, top = race.gates.axes[gate]
    centre = race.gates.centre[gate] + aside * left + up * top
    ends = [centre - behind * along, centre + ahead * along]
    goal, vel = race.goal(jnp.full((1, 1), float(gate + 7)), jnp.zeros((1, 1)))
    np.testing.assert_allclose(vel[0], race.speed * along, atol=1e-6)
    np.testing.assert_allclose(goal[0], race.gates.centre[gate], rtol=1e-6)
    before, after = (flight(x, [float(gate)], goal) for x in (ends[::-1] if backwards else ends))
    verdict, most = race.judge(before, after), max(abs(aside), abs(up))
    passed = race.advance(before, after)[0, 0] - gate
    if min(abs(most - 0.35), abs(most - 0.51)) < 1e-3:
        return  # at an edge
    assert passed == (most < 0.35 and not backwards)
    hit = 0.35 < most < 0.51 and not backwards
    assert bool(verdict.terminated[0]) == (hit or bool(passed and gate == 6))
    assert bool(verdict.success[0]) == (bool(passed) and gate == 6)
    distances = [np.linalg.norm(goal[0] - x) for x in (before.pos[0], after.pos[0])]
    expected = distances[0] - distances[1] + passed - hit
    np.testing.assert_allclose(verdict.reward[0], expected, atol=1e-5)


def test_a_scene_without_gates_has_no_race() -> None:
    with pytest.raises(ValueError, match="scene floor"):
        Race(scene="floor")
