"""Initial poses of drones: position and attitude (xyzw), 7 numbers each."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.scene.frames import grid_2d, quat_from_rpy

_NEAR = 0.5  # m, minimum distance from other drones


def initial_poses(config: SimulationConfig, n_drones: int, floor: float | None = 0.0) -> np.ndarray:
    """Return (n_drones, 7) the configured poses; by default drones stand side by side on the floor.

    Args:
        config: The simulation.
        n_drones: Number of drones.
        floor: Height of the floor [m]; without one, the height is 0.

    Raises:
        ValueError: `config.initial_poses` does not have `n_drones` poses.
    """
    if config.initial_poses is None:
        poses = np.zeros((n_drones, 7))
        poses[:, :2], poses[:, 6] = grid_2d(n_drones), 1.0
        poses[:, 2] = rest_height(config.drone_model) + (floor or 0.0)
        return poses
    poses = np.array(config.initial_poses, float)
    if poses.shape != (n_drones, 7):
        raise ValueError(f"initial_poses must have shape ({n_drones}, 7), got {poses.shape}")
    return np.array([checked_pose("initial_poses", pose) for pose in poses])


def poses_of(what: str, given: Sequence[float], n_drones: int) -> np.ndarray | None:
    """Return the poses (n_drones, 7) that a user gives as numbers; None if there are no numbers.

    Args:
        what: Name of the numbers in error messages.
        given: For each drone x, y, z [m], alone or with a yaw [rad] or a quaternion x, y, z, w.
        n_drones: Number of drones.

    Raises:
        ParameterError: There are too few or too many numbers, or one is not usable.
    """
    numbers, sizes = np.array(given, float), [size * n_drones for size in (3, 4, 7)]
    if numbers.size == 0:
        return None
    if numbers.size not in sizes:
        expected = f"{sizes[0]}, {sizes[1]} or {sizes[2]} numbers for {n_drones} drones"
        raise ParameterError(what, expected, list(given))
    if not np.isfinite(numbers).all():
        raise ParameterError(what, "finite numbers", list(given))
    poses = numbers.reshape(n_drones, -1)
    if poses.shape[1] == 7:
        if not poses[:, 3:].any(axis=1).all():
            got = limits.shown(list(given))
            raise ParameterError(what, f"quaternions must not be zero, got {got}")
        return poses
    angles = np.zeros((n_drones, 3))
    angles[:, 2:] = poses[:, 3:] if poses.shape[1] == 4 else 0.0
    return np.hstack((poses[:, :3], quat_from_rpy(angles)))


def free_place(config: SimulationConfig, pos: np.ndarray, floor: float | None = 0.0) -> np.ndarray:
    """Return (7,) the free pose on the floor nearest to the origin, with drones at (n, 3)."""
    n_points = 2 * len(pos) + 1  # a drone is near two points of the grid at most
    points = grid_2d((2 * isqrt(n_points) + 3) ** 2)[:n_points]
    place = next(p for p in points if np.linalg.norm(pos[:, :2] - p, axis=-1).min() > _NEAR)
    height = rest_height(config.drone_model) + (floor or 0.0)
    return np.array([*place, height, 0.0, 0.0, 0.0, 1.0])


def checked_pose(what: str, pose: ArrayLike) -> np.ndarray:
    """Return a pose, (7,), with a unit quaternion.

    Args:
        what: Name of the pose in the error message.
        pose: (7,) m and xyzw.

    Raises:
        ValueError: The pose has another shape, is not finite, or has a zero quaternion.
    """
    checked = np.array(pose, float)
    if checked.shape != (7,):
        raise ValueError(f"{what} must have shape (7,), got {checked.shape}")
    norm = np.linalg.norm(checked[3:])
    if not np.isfinite(checked).all() or norm == 0:
        raise ValueError(f"{what} must be finite with an attitude, got {checked.tolist()}")
    checked[3:] /= norm
    return checked
