"""The ground below a drone: the floor, or the top of a shape of the world."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape

_WITHIN = 1e-3  # m that a drone may be below a surface and still stand on it
_PARALLEL = 1e-9


class Ground:
    """Heights of a world below places.

    Args:
        shapes: The shapes of the world.
        floor: Height of its floor [m].

    Attributes:
        floor: As given.
    """

    def __init__(self, shapes: Sequence[VisibleShape] = (), floor: float = 0.0) -> None:
        self.floor = floor
        round_forms = ShapeForm.SPHERE, ShapeForm.CYLINDER
        solid = [shape for shape in shapes if shape.form is not ShapeForm.MESH]
        # Cylinders that do not stand are boxes here, a few millimetres too high at their sides.
        self._centres = np.array([shape.position for shape in solid]).reshape(-1, 3)
        self._turns = np.array([rotation_matrix(s.attitude).T for s in solid]).reshape(-1, 3, 3)
        self._halves = np.array([shape.size for shape in solid]).reshape(-1, 3) / 2
        self._reach = np.linalg.norm(self._halves, axis=1)
        self._is_ball = np.array([s.form is ShapeForm.SPHERE for s in solid], bool)
        self._is_round = np.array([s.form in round_forms for s in solid], bool)
        triangles = [
            shape.triangles @ rotation_matrix(shape.attitude).T + shape.position
            for shape in shapes
            if shape.triangles is not None
        ]
        self._triangles = np.concatenate([np.empty((0, 3, 3)), *triangles])
        self._lowest, self._highest = self._triangles.min(1), self._triangles.max(1)

    def below(self, places: np.ndarray) -> np.ndarray:
        """Return the height of the ground below each place [m], shape (M,).

        Args:
            places: Places [m], shape (M, 3).
        """
        heights = np.minimum(np.full(len(places), self.floor), places[:, 2])
        away = np.abs(places[:, None, :2] - self._centres[:, :2]).max(axis=2)
        rows, near = np.nonzero(away <= self._reach)
        if len(rows):
            np.maximum.at(heights, rows, self._tops(places[rows], near))
        if len(self._triangles):
            on_meshes = [self._on_triangles(place) for place in places]
            heights = np.maximum(heights, on_meshes)
        return heights

    def _tops(self, places: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        """Return where rays down from places (K, 3) meet shapes (K,) [m]; -inf for a miss."""
        turns, halves = self._turns[shapes], self._halves[shapes]
        is_ball, is_round = self._is_ball[shapes], self._is_round[shapes]
        start = np.einsum("kij,kj->ki", turns, places - self._centres[shapes]) / halves
        ray = -turns[:, :, 2] / halves  # in units of half the extents
        is_parallel = np.abs(ray) < _PARALLEL
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = (-start - np.sign(ray)) / ray, (-start + np.sign(ray)) / ray
        first, last = np.where(is_parallel, -np.inf, first), np.where(is_parallel, np.inf, last)
        is_in = (~is_parallel | (np.abs(start) <= 1)).all(axis=1)
        stands = is_round & ~is_ball & is_parallel[:, :2].all(axis=1)
        is_in &= ~stands | (np.linalg.norm(start[:, :2], axis=1) <= 1)
        along = first.max(axis=1)
        is_in &= along <= last.min(axis=1)
        a, b = (ray**2).sum(axis=1), (start * ray).sum(axis=1)
        under_root = b**2 - a * ((start**2).sum(axis=1) - 1)
        ball = (-b - np.sqrt(np.maximum(under_root, 0))) / a
        along = np.where(is_ball, ball, along)
        is_in = np.where(is_ball, under_root >= 0, is_in)
        return np.where(is_in & (along >= -_WITHIN), places[:, 2] - along, -np.inf)

    def _on_triangles(self, place: np.ndarray) -> float:
        flat = place[:2]
        near = ((self._lowest[:, :2] <= flat) & (flat <= self._highest[:, :2])).all(axis=1)
        near &= self._lowest[:, 2] <= place[2] + _WITHIN
        if not near.any():
            return -np.inf
        a, b, c = np.moveaxis(self._triangles[near], 1, 0)
        u, v, w = b - a, c - a, flat - a[:, :2]
        area = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = (w[:, 0] * v[:, 1] - w[:, 1] * v[:, 0]) / area
            gamma = (u[:, 0] * w[:, 1] - u[:, 1] * w[:, 0]) / area
        height = a[:, 2] + beta * u[:, 2] + gamma * v[:, 2]
        is_in = (beta >= 0) & (gamma >= 0) & (beta + gamma <= 1) & (height <= place[2] + _WITHIN)
        return float(height[is_in].max()) if is_in.any() else -np.inf
