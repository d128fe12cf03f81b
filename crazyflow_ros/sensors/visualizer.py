"""Drawing of readings into a MuJoCo scene, that of a viewer or of a renderer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import mujoco
import numpy as np

Color: TypeAlias = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""


class Visualizer(Protocol):
    """What a sensor draws on. Points are in the world [m], shape (3,)."""

    worlds: Sequence[int]
    """The worlds to draw."""
    meansize: float
    """Typical size of a body in the scene [m], which symbols are scaled with."""

    def add_sphere(self, center: np.ndarray, radius: float, color: Color) -> None:
        """Draw a sphere of a radius [m]."""

    def add_arrow(self, start: np.ndarray, end: np.ndarray, color: Color, width: float) -> None:
        """Draw an arrow whose shaft has a width [m]."""


class SceneVisualizer:
    """Draws into an `MjvScene`, for example `viewer.user_scn` or `renderer.scene`.

    Args:
        scene: What to add to. Symbols that do not fit in are left out.
        model: Its model.
        worlds: The worlds to draw.
    """

    def __init__(
        self, scene: mujoco.MjvScene, model: mujoco.MjModel, worlds: Sequence[int] = (0,)
    ) -> None:
        self._scene = scene
        self.worlds = worlds
        self.meansize = float(model.stat.meansize)

    def add_sphere(self, center: np.ndarray, radius: float, color: Color) -> None:
        """Draw a sphere of a radius [m]."""
        if (geom := self._next()) is not None:
            kind, size = mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, radius)
            rgba = np.array(color, np.float32)
            mujoco.mjv_initGeom(geom, kind, size, center, np.eye(3).ravel(), rgba)

    def add_arrow(self, start: np.ndarray, end: np.ndarray, color: Color, width: float) -> None:
        """Draw an arrow whose shaft has a width [m]."""
        if (geom := self._next()) is not None:
            kind, rgba = mujoco.mjtGeom.mjGEOM_ARROW, np.array(color, np.float32)
            mujoco.mjv_initGeom(geom, kind, np.zeros(3), np.zeros(3), np.eye(3).ravel(), rgba)
            mujoco.mjv_connector(geom, kind, width, start, end)

    def _next(self) -> mujoco.MjvGeom | None:
        if self._scene.ngeom >= self._scene.maxgeom:
            return None
        self._scene.ngeom += 1
        return self._scene.geoms[self._scene.ngeom - 1]
