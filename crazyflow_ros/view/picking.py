"""The drone or the point of the floor under the pointer."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.view.frame import Frame

_NEAR = 0.08  # m, largest distance between a drone and the ray
_ANGLE = 0.015  # rad, the same as an angle from the start of the ray, for distant drones
_FARTHEST = 50.0  # m


def drone_at(
    frame: Frame, origin: np.ndarray, direction: np.ndarray, size: float = 1.0
) -> str | None:
    """Return the nearest drone on a ray, or None.

    Args:
        frame: The drones.
        origin: Start of the ray [m], shape (3,).
        direction: Its direction, shape (3,).
        size: Drawn size of the drones as a multiple of their real size.
    """
    direction = direction / np.linalg.norm(direction)
    away = frame.position - origin
    along = away @ direction
    beside = np.linalg.norm(away - along[:, None] * direction, axis=1)
    is_hit = (along > 0) & (beside < np.maximum(size * _NEAR, _ANGLE * along))
    if not is_hit.any():
        return None
    return frame.names[int(np.argmin(np.where(is_hit, along, np.inf)))]


def floor_at(origin: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
    """Return where a ray meets the floor z = 0 [m], shape (3,), or None if it is too far away."""
    if direction[2] >= 0 or origin[2] <= 0:
        return None
    place = origin - direction * (origin[2] / direction[2])
    return place if np.linalg.norm(place - origin) < _FARTHEST else None
