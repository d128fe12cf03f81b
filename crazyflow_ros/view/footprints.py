"""The world from above: outlines of its shapes, for a map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape

_FLOOR = 0.05  # m, height up to which a shape is ground
_CEILING = 2.4  # m, height above which a shape is not in the way
_OPAQUE = 0.05  # least opacity
_CELL = 0.01  # m, to which coordinates are rounded
_MOST, _MOST_CORNERS = 400, 48  # outlines of a map, corners of an outline
_TURN = np.linspace(0, 2 * np.pi, 24, endpoint=False)
_RING = np.stack([np.cos(_TURN), np.sin(_TURN), 0 * _TURN], axis=-1) / 2
_TOP = np.array([0.0, 0.0, 0.5])
_CORNERS = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(-1, 3)
_POINTS = {
    ShapeForm.BOX: _CORNERS,
    ShapeForm.CYLINDER: np.concatenate([_RING + _TOP, _RING - _TOP]),
    ShapeForm.SPHERE: np.concatenate([_RING, _RING[:, [2, 0, 1]], _RING[:, [0, 2, 1]]]),
}


class Footprint(NamedTuple):
    """The outline of a shape from above."""

    corners: np.ndarray
    """Convex, counter-clockwise [m], shape (K, 2)."""
    color: str
    """As in CSS."""
    is_floor: bool
    """Whether drones stand on it, and fly over it."""


def footprints(shapes: Iterable[VisibleShape]) -> list[Footprint]:
    """Return the outlines of shapes, the lowest first, without the smallest of very many."""
    found: list[tuple[float, float, Footprint]] = []
    for shape in shapes:
        points = _points(shape)
        if not len(points) or not np.isfinite(points).all() or shape.rgba[3] < _OPAQUE:
            continue
        bottom, top = points[:, 2].min(), points[:, 2].max()
        corners = _hull(points[:, :2])
        if bottom < _CEILING and len(corners) > 2:
            red, green, blue = np.clip(np.round(255 * shape.rgba[:3]), 0, 255).astype(int)
            outline = Footprint(corners, f"#{red:02x}{green:02x}{blue:02x}", bool(top <= _FLOOR))
            found.append((top, float(np.prod(np.ptp(corners, axis=0))), outline))
    largest = sorted(found, key=lambda entry: entry[1])[-_MOST:]
    return [outline for *_, outline in sorted(largest, key=lambda entry: entry[0])]


def _points(shape: VisibleShape) -> np.ndarray:
    """Return points of a shape in the world, of which the outermost are on its outline."""
    if shape.form is ShapeForm.MESH:
        assert shape.triangles is not None
        local = shape.triangles.reshape(-1, 3)
    else:
        local = _POINTS[shape.form] * shape.size
    return shape.position + local @ rotation_matrix(shape.attitude).T


def _hull(points: np.ndarray) -> np.ndarray:
    """Return the corners of the convex hull of points (n, 2), by Andrew's chains."""
    ordered = np.unique(np.round(points / _CELL) * _CELL, axis=0).tolist()
    chains = []
    for direction in (ordered, ordered[::-1]):
        chain: list[list[float]] = []
        for x, y in direction:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                chain.pop()
            chain.append([x, y])
        chains += chain[:-1]
    return np.array(chains[:: len(chains) // _MOST_CORNERS + 1]).reshape(-1, 2)
