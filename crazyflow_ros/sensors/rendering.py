"""Pictures of a scene, drawn off screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from crazyflow_ros.scene.renderers import Renderers, draw_depth

DataType = Literal["rgb", "depth", "segmentation", "normals", "flow"]


@dataclass(frozen=True)
class View:
    """The view of a picture, and its size."""

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


def draw(renderers: Renderers, data: mujoco.MjData, view: View, kind: DataType) -> np.ndarray:
    """Draw one picture, rows from the top.

    Returns:
        "rgb": (height, width, 3) uint8. "depth": (height, width) float32, distance along the
        optical axis [m], infinite where nothing is nearer than the far plane. "segmentation":
        (height, width, 2) int32, id and `mjtObj` of the object, -1 where there is none.

    Raises:
        RenderingUnavailable: There is nothing to draw with.
        RuntimeError: Another thread has drawn before.
    """
    renderer = renderers.get(view.width, view.height, shadows=view.shadows)
    # Geoms alone: MuJoCo's drawings that explain a model are not part of the scene.
    option = mujoco.MjvOption()
    option.sitegroup[:] = 0
    option.geomgroup[:] = [group in view.groups for group in range(mujoco.mjNGROUP)]
    option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = False
    option.flags[mujoco.mjtVisFlag.mjVIS_TEXTURE] = view.textures
    camera = mujoco.MjvCamera()
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, view.camera
    renderers.update_scene(renderer, data, camera, option)
    renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = view.shadows
    if kind == "rgb":
        return renderer.render()
    if kind == "segmentation":
        renderer.enable_segmentation_rendering()
        picture = renderer.render()
        renderer.disable_segmentation_rendering()
        return picture
    return draw_depth(renderer)
