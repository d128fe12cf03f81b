"""Drawing of readings: into a MuJoCo scene, or into lists for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.scene.markers import Marker, has_put

Color: TypeAlias = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""


VECTOR_LENGTH = 3.0
"""Length of an arrow for one unit of any quantity, in `meansize`s."""


class Visualizer(Protocol):
    """A canvas for sensors. Points are in the world [m], shape (3,)."""

    worlds: Sequence[int]
    """The worlds to draw."""
    meansize: float
    """Typical size of a body in the scene [m], by which symbols are scaled."""

    def add_sphere(self, center: np.ndarray, radius: float, color: Color) -> None:
        """Draw a sphere of a radius [m]."""

    def add_arrow(self, start: np.ndarray, end: np.ndarray, color: Color, width: float) -> None:
        """Draw an arrow whose shaft has a width [m]."""


def draw_vector(
    visualizer: Visualizer, start: np.ndarray, vector: np.ndarray, color: Color
) -> None:
    """Draw a vector of the world as an arrow, scaled by `VECTOR_LENGTH`."""
    size = visualizer.meansize
    visualizer.add_arrow(start, start + VECTOR_LENGTH * size * vector, color, 0.2 * size)


class Sphere(NamedTuple):
    """A sphere in the world."""

    center: np.ndarray
    """m, shape (3,)."""
    radius: float
    """m."""
    color: Color


class Arrow(NamedTuple):
    """An arrow in the world."""

    start: np.ndarray
    """m, shape (3,)."""
    end: np.ndarray
    """m, shape (3,)."""
    color: Color
    width: float
    """Width of its shaft [m]."""


class ShapeRecorder:
    """Records drawings as data, for example for markers of RViz.

    Args:
        model: The model, whose `meansize` scales the symbols.
        worlds: The worlds to draw.
    """

    def __init__(self, model: mujoco.MjModel, worlds: Sequence[int] = (0,)) -> None:
        self.worlds = worlds
        self.meansize = float(model.stat.meansize)
        self.spheres: list[Sphere] = []
        self.arrows: list[Arrow] = []

    def add_sphere(self, center: np.ndarray, radius: float, color: Color) -> None:
        """Keep a sphere of a radius [m]."""
        self.spheres.append(Sphere(center, radius, color))

    def add_arrow(self, start: np.ndarray, end: np.ndarray, color: Color, width: float) -> None:
        """Keep an arrow whose shaft has a width [m]."""
        self.arrows.append(Arrow(start, end, color, width))


class SceneVisualizer:
    """Draws into an `MjvScene`, for example `viewer.user_scn` or `renderer.scene`.

    Args:
        scene: The scene to add to. Symbols that do not fit are left out.
        model: The model of the scene.
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
        rgba = np.array(color)
        has_put(self._scene, Marker(mujoco.mjtGeom.mjGEOM_SPHERE, radius, center, center, rgba))

    def add_arrow(self, start: np.ndarray, end: np.ndarray, color: Color, width: float) -> None:
        """Draw an arrow whose shaft has a width [m]."""
        rgba = np.array(color)
        has_put(self._scene, Marker(mujoco.mjtGeom.mjGEOM_ARROW, width, start, end, rgba))
