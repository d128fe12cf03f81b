"""The obstacles of a world by name, for messages about the way of a drone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crazyflow_ros.dynamics.ground import height_below
from crazyflow_ros.dynamics.obstacles import Obstacles, Shape, signed_distance
from crazyflow_ros.scene import frames

if TYPE_CHECKING:
    from crazyflow_ros.scene.terrain import Terrain

_ABOVE_ALL = 1e4  # m


class ObstacleOnPath(NamedTuple):
    """An obstacle on a path."""

    name: str
    begin: int
    """Index of the first point of the path that is inside."""
    ends_inside: bool
    """Whether the last point is inside."""


class Surroundings:
    """Obstacles at rest, in NumPy, so that nothing is compiled.

    Args:
        obstacles: The obstacles; None for none.
        names: Their names; the others are called by their number.
        terrain: Further obstacles; None for none.

    Attributes:
        is_empty: Whether there is no obstacle.
        top: Height of the highest obstacle [m]; 0 without any, other than planes.
        bottom: Height of the lowest obstacle [m], or 0; that of a plane is that of its origin.
    """

    def __init__(
        self,
        obstacles: Obstacles | None = None,
        names: Sequence[str] = (),
        terrain: Terrain | None = None,
    ) -> None:
        if obstacles is None:
            obstacles = Obstacles.create((), np.zeros((0, 3)), np.zeros((0, 3)))
        used = np.flatnonzero(np.asarray(obstacles.shape) != Shape.none)
        self._names = [names[i] if i < len(names) else f"obstacle {i}" for i in used.tolist()]
        self._shape = np.asarray(obstacles.shape)[used]
        size, pos, quat = (
            np.asarray(figure, float)[used]
            for figure in (obstacles.size, obstacles.pos, obstacles.quat)
        )
        self._size, self._pos, self._quat = size, pos, quat
        axes = np.abs(frames.rotation_matrix(quat))
        half = np.einsum("kij,kj->ki", axes, _half_sides(self._shape, size))
        endless = (self._shape == Shape.plane)[:, None]
        self._low = np.where(endless, -np.inf, pos - half)
        self._high = np.where(endless, np.inf, pos + half)
        self.top = float(self._high[~endless[:, 0], 2].max(initial=0.0))
        self.bottom = float(np.minimum(pos - half, pos)[:, 2].min(initial=0.0))
        self.terrain = terrain
        if terrain is not None:  # its shapes come after the others
            self._names += terrain.names
            self._low, self._high = (
                np.vstack(sides) for sides in ((self._low, terrain.low), (self._high, terrain.high))
            )
            self.top = max(self.top, float(terrain.high[:, 2].max()))
            self.bottom = min(self.bottom, float(terrain.low[:, 2].min()))
        self.is_empty = not self._names

    def inside(self, centres: np.ndarray, radii: np.ndarray, depth: float) -> list[str]:
        """Return the names of the obstacles that bodies are inside; empty for bodies that are free.

        Args:
            centres: (m, n, 3) centres of n spheres of each of m bodies, world frame, m.
            radii: (n,) m.
            depth: By how much a sphere may be inside, m.
        """
        found = []
        for body in centres:
            which = self.near(body, float(radii.max(initial=0.0)))
            gaps = (self._distances(body, which) - radii[:, None]).min(axis=0, initial=np.inf)
            deepest = int(gaps.argmin()) if gaps.size else 0
            is_inside = gaps.size and gaps[deepest] < -depth
            found.append(self._names[which[deepest]] if is_inside else "")
        return found

    def ground(self, places: np.ndarray) -> np.ndarray:
        """Return the heights of the highest obstacles at places (n, 2) [m]; -1e9 without one."""
        x, y = places.T[:, None]
        axes = frames.rotation_matrix(self._quat)
        rows = tuple(tuple(axes[:, i, j, None] for j in range(3)) for i in range(3))
        size, pos = (tuple(a.T[..., None]) for a in (self._size, self._pos))
        point = (x, y, np.full_like(x, _ABOVE_ALL))
        heights = height_below(self._shape[:, None], size, pos, rows, point)  # type: ignore[arg-type]
        found: np.ndarray = np.asarray(heights).max(axis=0, initial=-1e9)
        return found if self.terrain is None else np.maximum(found, self.terrain.ground(places))

    def near(self, points: np.ndarray, margin: float = 0.0) -> np.ndarray:
        """Return the indices of obstacles whose bounding box overlaps that of points (n, 3).

        Args:
            points: World frame, m.
            margin: Distance by which to enlarge the box of the points, m.
        """
        low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        overlap = (self._low <= high).all(axis=1) & (self._high >= low).all(axis=1)
        return np.flatnonzero(overlap)

    def passed(self, path: np.ndarray) -> list[ObstacleOnPath]:
        """Return the obstacles that a path enters, in their order along it.

        An obstacle that the path starts in is left out.

        Args:
            path: (n, 3) points, world frame, m.
        """
        which = self.near(path)
        inside = self._distances(path, which) < 0
        entered = np.flatnonzero(inside.any(axis=0) & ~inside[0]).tolist()
        found = [
            ObstacleOnPath(self._names[which[i]], int(inside[:, i].argmax()), bool(inside[-1, i]))
            for i in entered
        ]
        return sorted(found, key=lambda passage: passage.begin)

    def _distances(self, points: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return the signed distances (n, k) of points (n, 3) from some obstacles [m]."""
        others = which[which >= len(self._shape)] - len(self._shape)
        which = which[which < len(self._shape)]
        away = points[:, None] - self._pos[which]
        x, y, z = np.moveaxis(frames.world_to_body(self._quat[which], away), -1, 0)
        sides = self._size[which]
        size = (sides[:, 0], sides[:, 1], sides[:, 2])
        distance, _ = signed_distance(self._shape[which], size, (x, y, z))
        if self.terrain is None:
            return np.asarray(distance)
        return np.hstack((distance, self.terrain.distances(points, others)))


def _half_sides(shape: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return half the sides (k, 3) of the boxes around shapes, in their own axes [m]."""
    radius, length = size[:, 0], size[:, 1]
    sides = {
        Shape.sphere: (radius, radius, radius),
        Shape.capsule: (radius, radius, radius + length),
        Shape.cylinder: (radius, radius, length),
        Shape.box: (radius, length, size[:, 2]),
    }
    half = np.zeros((len(shape), 3))
    for kind, box in sides.items():
        half = np.where((shape == kind)[:, None], np.stack(box, axis=1), half)
    return half
