"""Soft shadows on the ground below the drones, each with a line up to its drone."""

from __future__ import annotations

from functools import cache
from itertools import chain, pairwise
from typing import Any

import numpy as np

from crazyflow_ros.view.glb import band, circle, glb_of, unlit
from crazyflow_ros.view.ground import Ground

_PROFILE = ((0.0, 0.83), (0.35, 0.8), (0.62, 0.46), (0.82, 0.16), (1.0, 0.0))
"""Distance from the middle in drone radii, and opacity."""
_SPREAD = 1.25  # radius of the shadow in drone radii
_SECTIONS = 24
_DASHES, _LINE = 20, 0.018  # of a line from the shadow to its drone; half its width in drone radii
_DARK, _BRIGHT = (0.05, 0.07, 0.1), (1.0, 1.0, 1.0)  # so that one is seen before anything
ABOVE = 0.006  # m above the ground, to be seen
_MOVED = 2e-3  # m, the smallest change that is sent


class Shadows:
    """The shadows of all drones, in one node of the scene.

    Args:
        scene: The scene.
        radii: Radius of each drone [m], shape (M,).

    Attributes:
        ground: What is below the drones.
        reach: Height above the ground below which a drone has a shadow, in its radii.
    """

    reach = np.inf

    def __init__(
        self, scene: Any, radii: np.ndarray, ground: Ground, name: str = "/shadows"
    ) -> None:
        self.ground, self._radii = ground, radii
        count = len(radii)
        self._sent: tuple[np.ndarray, np.ndarray] | None = None
        self._node = scene.add_batched_glb(
            name,
            shadow_glb(),
            np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1)),
            np.zeros((count, 3), np.float32),
            batched_scales=np.zeros((count, 3), np.float32),
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )

    def remove(self) -> None:
        """Remove the shadows."""
        self._node.remove()

    def show(self, position: np.ndarray, size: float, *, visible: bool) -> None:
        """Move the shadows.

        Args:
            position: Places of the drones [m], shape (M, 3).
            size: Drawn size of the drones as a multiple of their real size.
            visible: Whether to show them.
        """
        self._node.visible = visible
        if not visible:
            return
        height = self.ground.below(position)
        places = np.column_stack([position[:, :2], height + ABOVE])
        wide = size * self._radii * (position[:, 2] - height < self.reach * self._radii)
        scales = np.column_stack([wide, wide, np.maximum(position[:, 2] - height, 1e-4)])
        if self._sent is not None:
            changes = (np.abs(a - b).max() for a, b in zip(self._sent, (places, scales)))
            if max(changes) < _MOVED:
                return
        self._sent = places, scales
        self._node.batched_positions = places.astype(np.float32)
        self._node.batched_scales = scales.astype(np.float32)


@cache
def shadow_glb() -> bytes:
    """Return a disc of radius 1 with a line of height 1 on it."""
    ring = np.column_stack([circle(_SECTIONS), np.zeros(_SECTIONS)])
    corners = [_SPREAD * radius * ring for radius, _ in _PROFILE]
    colors = [np.tile((0.0, 0.0, 0.0, opacity), (_SECTIONS, 1)) for _, opacity in _PROFILE]
    rings = (band(number * _SECTIONS, _SECTIONS) for number in range(len(_PROFILE) - 1))
    faces = [*chain(*rings)]
    square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * _LINE
    ends = np.linspace(0.0, 1.0, _DASHES + 1)
    for number, (low, high) in enumerate(pairwise(ends)):
        first = sum(map(len, corners))
        corners += [np.column_stack([square, np.full(4, z)]) for z in (low, high)]
        color = _DARK if number % 2 else _BRIGHT
        colors.append(np.tile((*color, 0.9), (8, 1)))
        a = first + np.arange(4)
        b = first + (np.arange(4) + 1) % 4
        faces += [np.column_stack([a, b, b + 4]), np.column_stack([a, b + 4, a + 4])]
    surface = unlit(np.concatenate(corners), np.concatenate(colors), np.concatenate(faces))
    return glb_of([surface])
