"""Initial poses of drones: position and attitude (xyzw), 7 numbers each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.dynamics.forces.floor import rest_height
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.sim.data import grid_2d

_NEAR = 0.5  # m, minimum distance from other drones


def initial_poses(config: SimulationConfig, n_drones: int) -> np.ndarray:
    """Return (n_drones, 7) the configured poses; by default drones stand side by side on the floor.

    Raises:
        ValueError: `config.initial_poses` does not have `n_drones` poses.
    """
    if config.initial_poses is None:
        poses = np.zeros((n_drones, 7))
        poses[:, :2], poses[:, 6] = grid_2d(n_drones), 1.0
        poses[:, 2] = rest_height(config.drone_model)
        return poses
    poses = np.array(config.initial_poses, float)
    if poses.shape != (n_drones, 7):
        raise ValueError(f"initial_poses must have shape ({n_drones}, 7), got {poses.shape}")
    return np.array([checked_pose("initial_poses", pose) for pose in poses])


def free_place(config: SimulationConfig, pos: np.ndarray) -> np.ndarray:
    """Return (7,) the free pose on the floor nearest to the origin, with drones at (n, 3)."""
    points = grid_2d((2 * len(pos) + 1) ** 2)  # more points than the drones can occupy
    distance = np.linalg.norm(points[:, None] - pos[:, :2], axis=-1).min(axis=1)
    height = rest_height(config.drone_model)
    return np.array([*points[np.argmax(distance > _NEAR)], height, 0.0, 0.0, 0.0, 1.0])


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
