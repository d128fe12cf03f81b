"""Shapes that are drawn on top of a scene; sensors do not see them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import mujoco
import numpy as np

_UPRIGHT = np.eye(3).ravel()


class Marker(NamedTuple):
    """A sphere, or a shape between two points."""

    kind: mujoco.mjtGeom
    """`mjGEOM_SPHERE`, `mjGEOM_LINE`, `mjGEOM_CAPSULE`, `mjGEOM_CYLINDER` or `mjGEOM_ARROW`."""
    width: float
    """Radius [m]; for a line, its width [pixels]."""
    start: np.ndarray
    """(3,) centre of a sphere, otherwise one end, world frame, m."""
    end: np.ndarray
    """(3,) other end; a sphere has none."""
    rgba: np.ndarray
    """(4,) colour and opacity, 0 to 1."""


def add_markers(scene: mujoco.MjvScene, markers: Iterable[Marker]) -> None:
    """Add markers to a scene that has been updated.

    Raises:
        RuntimeError: The scene has no room for them.
    """
    for marker in markers:
        if not has_put(scene, marker):
            raise RuntimeError(f"a picture has room for {scene.maxgeom} shapes, markers included")


def has_put(scene: mujoco.MjvScene, marker: Marker) -> bool:
    """Add a marker to a scene if there is room for it; return whether there is."""
    if scene.ngeom >= scene.maxgeom:
        return False
    geom, rgba = scene.geoms[scene.ngeom], np.asarray(marker.rgba, np.float32)
    mujoco.mjv_initGeom(geom, marker.kind, np.full(3, marker.width), marker.start, _UPRIGHT, rgba)
    if marker.kind != mujoco.mjtGeom.mjGEOM_SPHERE:
        mujoco.mjv_connector(geom, marker.kind, marker.width, marker.start, marker.end)
    scene.ngeom += 1
    return True
