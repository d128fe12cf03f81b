"""Pictures of a scene, drawn off screen."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from crazyflow_ros.opengl import PACKAGES

DataType = Literal["rgb", "depth", "segmentation"]


class RenderingUnavailable(RuntimeError):
    """Nothing to draw with on this machine."""


@dataclass(frozen=True)
class View:
    """What of a scene a picture shows, and how large."""

    camera: int
    """Id of the camera."""
    width: int
    """Pixels in a row."""
    height: int
    """Pixels in a column."""
    groups: tuple[int, ...]
    """Geom groups that are seen."""
    textures: bool
    """Whether surfaces have their textures."""
    shadows: bool
    """Whether lights cast shadows."""


class Renderers:
    """One renderer for each size of picture, made when the first of that size is drawn.

    OpenGL binds them to the thread that draws first.

    Args:
        model: The scene.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._thread: int | None = None
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}

    def draw(self, data: mujoco.MjData, view: View, kind: DataType) -> np.ndarray:
        """Draw one picture, rows from the top.

        Returns:
            "rgb": (height, width, 3) uint8. "depth": (height, width) float32, distance along the
            optical axis [m], infinite where there is nothing before the far plane (MuJoCo gives the
            distance of that plane). "segmentation": (height, width, 2) int32, id and `mjtObj`
            of the object, -1 where there is none.

        Raises:
            RenderingUnavailable: There is nothing to draw with.
            RuntimeError: Another thread has drawn before.
        """
        thread = threading.get_ident()
        if self._thread not in (None, thread):
            raise RuntimeError("cameras belong to the thread that has drawn first; close() there")
        self._thread = thread
        renderer = self._renderer(view.width, view.height)
        # Geoms alone: what MuJoCo draws to explain a model is not part of the scene.
        option = mujoco.MjvOption()
        option.sitegroup[:] = 0
        option.geomgroup[:] = [group in view.groups for group in range(mujoco.mjNGROUP)]
        option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = False
        option.flags[mujoco.mjtVisFlag.mjVIS_TEXTURE] = view.textures
        renderer.update_scene(data, view.camera, option)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = view.shadows
        if kind == "rgb":
            return renderer.render()
        if kind == "segmentation":
            renderer.enable_segmentation_rendering()
            picture = renderer.render()
            renderer.disable_segmentation_rendering()
            return picture
        renderer.enable_depth_rendering()
        picture = renderer.render()
        renderer.disable_depth_rendering()
        far = self._model.vis.map.zfar * self._model.stat.extent
        picture[picture >= far * (1 - 1e-6)] = np.inf
        return picture

    def close(self) -> None:
        """Free what draws, in the thread that has drawn; the next picture makes it anew."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
        self._thread = None

    def _renderer(self, width: int, height: int) -> mujoco.Renderer:
        if (width, height) not in self._renderers:
            limits = self._model.vis.global_
            limits.offwidth = max(width, limits.offwidth)
            limits.offheight = max(height, limits.offheight)
            try:
                self._renderers[width, height] = mujoco.Renderer(self._model, height, width)
            except Exception as error:  # of whichever library should have made the context
                chosen = os.environ.get("MUJOCO_GL", "not set")
                raise RenderingUnavailable(
                    f"cameras cannot draw: {error} (MUJOCO_GL is {chosen}). Without a display, "
                    f"install {PACKAGES} and set MUJOCO_GL=egl, or libosmesa6 and osmesa"
                ) from error
        return self._renderers[width, height]
