"""Acceleration commands: the attitude they ask for gives the acceleration they ask for."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.control.acceleration import GRAVITY, attitude_command

MASS = 0.03
RNG = np.random.default_rng(3)


def attitude_commands(acc: np.ndarray, yaw: np.ndarray, quat: np.ndarray) -> np.ndarray:
    """Thrust, roll, pitch and yaw of each drone, shape (M, 4)."""
    return np.array([attitude_command(*numbers, MASS) for numbers in zip(acc, yaw, quat)])


def commands(n: int) -> tuple[np.ndarray, np.ndarray]:
    acc = RNG.uniform([-8, -8, -5], [8, 8, 20], (n, 3))
    return acc, RNG.uniform(-np.pi, np.pi, n)


def test_in_the_commanded_attitude_the_thrust_gives_the_acceleration() -> None:
    acc, yaw = commands(100)
    level = np.tile([0.0, 0.0, 0.0, 1.0], (100, 1))
    rpy = attitude_commands(acc, yaw, level)[:, 1:]
    attitude = Rotation.from_euler("xyz", rpy)
    thrust = attitude_commands(acc, yaw, attitude.as_quat())[:, 0]
    force = attitude.apply(np.outer(thrust, [0, 0, 1]))
    np.testing.assert_allclose(force / MASS - [0, 0, GRAVITY], acc, atol=1e-9)
    np.testing.assert_allclose(rpy[:, 2], yaw)


def test_thrust_is_what_acts_along_the_present_z_axis() -> None:
    acc, yaw = commands(100)
    attitude = Rotation.random(100, rng=RNG)
    thrust = attitude_commands(acc, yaw, attitude.as_quat())[:, 0]
    lift = acc + np.array([0, 0, GRAVITY])
    along = MASS * (lift * attitude.apply([0, 0, 1])).sum(axis=1)
    np.testing.assert_allclose(thrust, np.maximum(along, 0), atol=1e-12)
    assert (along < 0).any()


@pytest.mark.parametrize("down", [-GRAVITY, -50.0])
def test_no_command_turns_the_drone_over(down: float) -> None:
    acc = np.array([[0.0, 0.0, down], [3.0, -3.0, down]])
    level = np.tile([0.0, 0.0, 0.0, 1.0], (2, 1))
    command = attitude_commands(acc, np.zeros(2), level)
    np.testing.assert_allclose(command[0], [0.1 * MASS * GRAVITY, 0, 0, 0])
    assert (np.abs(command[1, 1:]) < np.pi / 2).all()
