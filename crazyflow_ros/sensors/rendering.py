"""Pictures of a scene, drawn off screen, and the choice between OpenGL and other renderers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.renderers import Renderers, RenderingUnavailable, draw_depth

DataType = Literal["rgb", "depth", "segmentation", "normals", "flow"]
RENDERERS = "crazyflow_ros.renderers"
"""Group of the entry points of renderers other than OpenGL, see `CameraRenderer`."""
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")
"""Parts of the names of OpenGL's devices that are no GPU."""


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


class Room:
    """Sizes for which pictures are compiled, of a scene that gains and loses geoms.

    The sizes are at least those that the scene needs, and never shrink.
    """

    def __init__(self) -> None:
        self._sizes: dict[Hashable, int] = {}

    def size(self, what: Hashable, needed: int, unit: int) -> int:
        """Return a size that never shrinks: a multiple of `unit`, at least `needed`."""
        size = max(self._sizes.get(what, 0), -(-needed // unit) * unit)
        self._sizes[what] = size
        return size


class RendererChoice(NamedTuple):
    """A renderer, and why it was chosen."""

    renderer: str
    """"opengl", or the name of an entry point of `RENDERERS`."""
    reason: str


def choose(device: Callable[[], str], trace: Callable[[], object]) -> RendererChoice:
    """Choose OpenGL with a GPU, else rays if they can draw the scene.

    A fixed rule decides, not a measurement, so that two starts choose the same. Without a GPU, rays
    need a half to a twentieth of the processor time of OpenGL; see docs/benchmarks.md.

    Args:
        device: Returns the name of OpenGL's device.
        trace: Takes the pictures by rays.

    Raises:
        RenderingUnavailable: There is no OpenGL, and rays cannot draw the scene.
    """
    missing, name = None, ""
    try:
        name = device()
    except RenderingUnavailable as error:
        missing = error
    if name and not any(word in name.lower() for word in _SOFTWARE):
        return RendererChoice("opengl", f"it has a GPU, {name}")
    try:
        trace()
    except ValueError as error:
        if missing is None:
            return RendererChoice("opengl", f"rays cannot draw this scene: {error}")
        raise RenderingUnavailable(f"{missing}. Rays cannot draw this scene: {error}") from None
    if missing is not None:
        return RendererChoice("rays", f"there is no OpenGL: {missing}")
    return RendererChoice("rays", f"OpenGL has no GPU here, but {name}")
