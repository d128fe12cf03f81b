"""Off-screen rendering of a scene."""

from __future__ import annotations

import atexit
import threading
from functools import cache
from weakref import WeakSet

import mujoco
import numpy as np

from crazyflow_ros.opengl import advice

_open: WeakSet[Renderers] = WeakSet()


class RenderingUnavailable(RuntimeError):
    """OpenGL is not available on this machine."""


class Renderers:
    """One renderer for each image size, created on first use.

    OpenGL binds them to the first thread that renders.

    Args:
        model: The scene.
        most: Number of renderers that are kept, of the latest sizes; a renderer takes some 200 MB
            with software rendering. None keeps all.
        max_geom: Room for shapes in a picture.
    """

    def __init__(
        self, model: mujoco.MjModel, most: int | None = None, max_geom: int = 10_000
    ) -> None:
        self.model, self._most, self._max_geom = model, most, max_geom
        self._thread: int | None = None
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}  # in order of use
        _open.add(self)

    def get(self, width: int, height: int) -> mujoco.Renderer:
        """Return the renderer for images of a size [pixels].

        Raises:
            ValueError: The size is not positive.
            RenderingUnavailable: OpenGL is not available.
            RuntimeError: Another thread has rendered before.
        """
        thread = threading.get_ident()
        if self._thread not in (None, thread):
            raise RuntimeError("only the first thread that rendered may render; call close() there")
        self._thread, size = thread, (width, height)
        renderer = self._renderers.pop(size, None)
        if renderer is None:
            if len(self._renderers) == self._most:
                self._renderers.pop(next(iter(self._renderers))).close()
            renderer = self._made(width, height)
        self._renderers[size] = renderer
        return renderer

    def belongs_to(self, thread: int) -> bool:
        """Return whether this thread has rendered."""
        return self._thread == thread

    def close(self) -> None:
        """Free the renderers, in the thread that has rendered; the next image creates new ones."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
        self._thread = None

    def _made(self, width: int, height: int) -> mujoco.Renderer:
        if width < 1 or height < 1:
            raise ValueError(f"an image must have at least one pixel, got {width} x {height}")
        # MuJoCo's buffer has the size given in the model, regardless of the size of the
        # image.
        limits = self.model.vis.global_
        before = limits.offwidth, limits.offheight
        limits.offwidth, limits.offheight = width, height
        try:
            renderer = mujoco.Renderer(self.model, height, width, self._max_geom)
        except Exception as error:  # of any of the libraries that create contexts
            raise RenderingUnavailable(f"nothing can be drawn: {error}. {advice()}") from error
        finally:
            limits.offwidth, limits.offheight = before
        _close_at_exit()
        return renderer


def update_scene(
    renderer: mujoco.Renderer,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    camera: mujoco.MjvCamera,
    option: mujoco.MjvOption | None = None,
) -> None:
    """Fill the scene of a renderer as a camera sees it.

    The headlight is at the camera. MuJoCo alone places it at the camera of the previous picture, so
    that pictures depend on their order.
    """
    mujoco.mjv_updateCamera(model, data, camera, renderer.scene)
    renderer.update_scene(data, camera, option)


def draw_depth(renderer: mujoco.Renderer) -> np.ndarray:
    """Render the scene of a renderer as distances.

    Returns:
        (height, width) float32, along the optical axis [m]; infinite where there is nothing before
        the far plane.
    """
    scene, n_geoms = renderer.scene, renderer.scene.ngeom
    renderer.enable_depth_rendering()
    try:
        picture = renderer.render()
        # The exact depth of an empty scene: MuJoCo computes a distance near the far plane,
        # partly in single precision.
        scene.ngeom = 0
        nothing = renderer.render()[0, 0]
    finally:
        scene.ngeom = n_geoms
        renderer.disable_depth_rendering()
    picture[picture >= nothing] = np.inf
    return picture


@cache
def _close_at_exit() -> None:
    """Register the cleanup; call this after MuJoCo has created its first context.

    MuJoCo then registers to end OpenGL at exit, and functions registered later are called earlier.
    """
    atexit.register(_close_all)


def _close_all() -> None:
    for renderers in list(_open):
        if renderers.belongs_to(threading.get_ident()):
            renderers.close()
