"""Initial poses of drones: position and attitude (xyzw), 7 numbers each."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.collisions import contact_spheres
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.flight.surroundings import Surroundings
from crazyflow_ros.scene.frames import body_to_world, grid_2d, quat_from_rpy

_DEEP = 5e-3  # m by which a drone may be inside what it stands on
_NOTHING = -1e8  # m, heights below which there is no ground
_WIDE = 21  # places of the grid among which one is free of obstacles, along an axis
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


def start_poses(
    config: SimulationConfig, names: Sequence[str], floor: float | None, around: Surroundings
) -> tuple[np.ndarray, list[str]]:
    """Return (n_drones, 7) `initial_poses` outside of obstacles, and which drones this moves.

    Args:
        config: The simulation.
        names: Names of the drones.
        floor: Height of the floor [m]; None for none.
        around: The obstacles.

    Raises:
        ValueError: A configured pose is inside an obstacle.
    """
    poses, moved = initial_poses(config, len(names), floor), []
    is_given = config.initial_poses is not None
    if not is_given and (floor is None or around.terrain is not None):
        poses[:, 2] = standing(config.drone_model, poses[:, :2], floor, around)
    for i, what in enumerate(obstructions(config.drone_model, poses, around)):
        if what and is_given:
            check_free(f"initial_poses of {names[i]}", config.drone_model, poses[i], around)
        if what:
            others = np.delete(poses[:, :3], i, axis=0)
            poses[i] = free_place(config, others, floor, around)
            moved.append(f"{names[i]} would start inside {what}: it starts at {shown(poses[i])}")
    return poses, moved


def resettled(
    config: SimulationConfig,
    poses: np.ndarray,
    before: float | None,
    floor: float | None,
    around: Surroundings,
) -> np.ndarray:
    """Return where drones are if their world becomes another one, (n, 7).

    Those that stood on the floor stand on the new one, and those inside something are moved.

    Args:
        config: The simulation.
        poses: (n, 7) where they were.
        before: Height of the floor until now [m]; None for none.
        floor: Height of the new floor [m]; None for none.
        around: The new obstacles.
    """
    drone, new = config.drone_model, poses.copy()
    rest = rest_height(drone)
    moves = np.zeros(len(new), bool)
    if before is not None and (before != floor or around.terrain is not None):
        moves |= np.abs(new[:, 2] - before - rest) < _DEEP
    if floor is not None:
        moves |= new[:, 2] < floor + rest - _DEEP
    new[moves, 2] = standing(drone, new[moves, :2], floor, around)
    for i, what in enumerate(obstructions(drone, new, around)):
        if what:
            new[i] = free_place(config, np.delete(new[:, :3], i, axis=0), floor, around)
    return new


def obstructions(drone: str, poses: np.ndarray, around: Surroundings) -> list[str]:
    """Return the names of the obstacles inside which drones would be; empty for those outside."""
    if around.is_empty:
        return [""] * len(poses)
    spheres = contact_spheres(drone)
    centres = body_to_world(poses[:, None, 3:], spheres[:, :3]) + poses[:, None, :3]
    return around.inside(centres, spheres[:, 3], _DEEP)


def check_free(name: str, drone: str, pose: np.ndarray, around: Surroundings) -> None:
    """Check that a drone at a pose is outside of obstacles.

    Args:
        name: Name of the pose in the error message.
        drone: Its model.
        pose: (7,) m and xyzw.
        around: The obstacles.

    Raises:
        ValueError: It is inside one.
    """
    (what,) = obstructions(drone, pose[None], around)
    if what:
        raise ValueError(f"{name}: {shown(pose)} is inside {what}")


def standing(
    drone: str, places: np.ndarray, floor: float | None, around: Surroundings
) -> np.ndarray:
    """Return the heights (n,) [m] of drones that stand at places (n, 2), on floor or terrain.

    Without a floor they stand on what is there, or are at z = 0 where there is nothing.
    """
    rest = rest_height(drone)
    ground = around.ground(places) if floor is None else np.full(len(places), floor)
    heights = np.where(ground < _NOTHING, 0.0, ground) + rest
    if around.terrain is not None:  # upright on slopes, on the foot whose ground is highest
        spheres = contact_spheres(drone)
        feet = places[:, None] + spheres[:, :2]
        ground = around.terrain.ground(feet.reshape(-1, 2)).reshape(feet.shape[:2])
        above = (ground + spheres[:, 3] - spheres[:, 2]).max(axis=1, initial=_NOTHING)
        heights = np.maximum(heights, above)
    return heights


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


def free_place(
    config: SimulationConfig, pos: np.ndarray, floor: float | None, around: Surroundings
) -> np.ndarray:
    """Return (7,) the free pose on the floor nearest to the origin, with drones at (n, 3).

    Args:
        config: The simulation.
        pos: (n, 3) positions of drones, m.
        floor: Height of the floor [m]; None for none.
        around: The obstacles.

    Raises:
        ValueError: All places near the origin are inside obstacles.
    """
    n_points = 2 * len(pos) + 1  # a drone is near two points of the grid at most
    points = grid_2d((2 * isqrt(n_points) + 3) ** 2)[:n_points]
    if not around.is_empty:
        points = grid_2d((2 * isqrt(n_points) + _WIDE) ** 2)
    heights = standing(config.drone_model, points, floor, around)
    for x, y, z in np.column_stack((points, heights)):
        pose = np.array([x, y, z, 0.0, 0.0, 0.0, 1.0])
        away = np.linalg.norm(pos[:, :2] - (x, y), axis=-1).min(initial=np.inf)
        if away > _NEAR and obstructions(config.drone_model, pose[None], around) == [""]:
            return pose
    raise ValueError("there is no free place for a drone near the origin: give a pose")


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


def shown(pose: np.ndarray) -> str:
    """Return a position, or that of a pose, as messages show it."""
    x, y, z = pose[:3]
    return f"({x:.2f}, {y:.2f}, {z:.2f}) m"
