"""Observations contain what their parts say, compared with SciPy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import motions
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.policy.observation import PARTS, Motion, Observation


def some_motion(*lead: int, seed: int = 0) -> Motion:
    return next(motions(1, *lead, seed=seed))


def test_default_observation_is_error_velocity_attitude_and_rates() -> None:
    motion = some_motion(5)
    observation = Observation()
    expected = [motion.goal - motion.pos, motion.goal_vel - motion.vel, motion.quat, motion.ang_vel]
    assert observation.size == 13
    np.testing.assert_array_equal(observation(motion), np.concatenate(expected, axis=-1))


def test_rotation_is_the_matrix_from_body_to_world() -> None:
    motion = some_motion(7)
    found = Observation(("rotation",))(motion)
    np.testing.assert_allclose(
        found, Rotation.from_quat(motion.quat).as_matrix().reshape(7, 9), atol=1e-6
    )


def test_vectors_in_body_axes_are_those_of_the_world_turned_back() -> None:
    motion = some_motion(7)
    to_body = Rotation.from_quat(motion.quat).inv()
    expected = {
        "body_position_error": motion.goal - motion.pos,
        "body_velocity_error": motion.goal_vel - motion.vel,
        "body_velocity": motion.vel,
        "body_goal_velocity": motion.goal_vel,
        "body_goal_acceleration": motion.goal_acc,
        "body_load_position": motion.load - motion.pos,
        "body_load_velocity": motion.load_vel - motion.vel,
    }
    found = Observation(tuple(expected))(motion)
    turned = [to_body.apply(vector) for vector in expected.values()]
    np.testing.assert_allclose(found, np.concatenate(turned, axis=-1), atol=1e-5)
    with pytest.raises(ValueError, match="contains the load, but the drone carries none"):
        Observation(tuple(expected))(motion._replace(load=None, load_vel=None))


def test_a_goal_that_is_far_away_or_fast_is_clipped_per_axis() -> None:
    motion = some_motion(50)
    parts = ("position_error", "velocity_error", "body_position_error", "position", "velocity")
    seen = Observation(parts, largest_errors=(0.5, 1.0))(motion)
    error = np.clip(motion.goal - motion.pos, -0.5, 0.5)
    to_body = Rotation.from_quat(motion.quat).inv()
    expected = [error, np.clip(motion.goal_vel - motion.vel, -1, 1), to_body.apply(error)]
    expected += [motion.pos, motion.vel]
    np.testing.assert_allclose(seen, np.concatenate(expected, axis=-1), atol=1e-5)
    only_far = Observation(parts, largest_errors=(0.5, 0.0))(motion)
    np.testing.assert_array_equal(only_far[:, 3:6], motion.goal_vel - motion.vel)


@pytest.mark.parametrize("drone", list(Drone))
def test_rotor_speeds_are_minus_one_and_one_at_the_limits_of_thrust(drone: str) -> None:
    figures = load_drone(drone)
    observation = Observation.of(drone, ["rotor_speeds"])
    for thrust, expected in (figures["thrust_min"], -1), (figures["thrust_max"], 1):
        k0, k1, k2 = figures["rpm2thrust"]
        speed = max(np.roots([k2, k1, k0 - thrust]).real)
        motion = some_motion()._replace(rotor_vel=np.full(4, speed))
        np.testing.assert_allclose(observation(motion), [expected] * 4, atol=1e-5)


@settings(max_examples=10, deadline=None)
@given(
    parts=st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=5),
    history=st.integers(1, 4),
    lead=st.sampled_from([(), (3,), (2, 3)]),
)
def test_history_is_the_last_frames_newest_first(
    parts: list[str], history: int, lead: tuple[int, ...]
) -> None:
    observation = Observation(tuple(parts), history, rotor_range=(3000.0, 20000.0))
    motions = [some_motion(*lead, seed=i) for i in range(history + 1)]
    frames = [observation.frame(motion) for motion in motions]
    seen = None
    for motion in motions:
        seen = observation(motion, seen)
    assert seen is not None and seen.shape == (*lead, observation.size)
    np.testing.assert_array_equal(seen, np.concatenate(frames[:0:-1], axis=-1))


def test_frames_before_the_first_are_zeros() -> None:
    observation = Observation(("velocity",), history=3)
    motion = some_motion(2)
    expected = np.concatenate([motion.vel, np.zeros((2, 6))], axis=-1)
    np.testing.assert_array_equal(observation(motion), expected)
    np.testing.assert_array_equal(observation(motion, np.zeros((2, 9), np.float32)), expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("part", ()), ("part", ("position", "mood")), ("history", 0), ("history", 1001),
        ("rotor_range", (5.0, 5.0)), ("rotor_range", (0.0, float("nan"))),
        ("largest_errors", (-1.0, 0.0)), ("largest_errors", (0.0, float("nan"))),
    ],
)  # fmt: skip
def test_refuses(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Observation(**{"parts" if name == "part" else name: value})
