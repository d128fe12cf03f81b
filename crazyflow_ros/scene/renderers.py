"""What draws pictures of a scene, off screen."""

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
    """Nothing to draw with on this machine."""


class Renderers:
    """One renderer for each size of picture, made when the first of that size is drawn.

    OpenGL binds them to the thread that draws first.

    Args:
        model: The scene.
        most: How many are kept, of the sizes that were drawn last; a renderer takes some 200 MB
            where the processor draws. All if None.
    """

    def __init__(self, model: mujoco.MjModel, most: int | None = None) -> None:
        self._model, self._most = model, most
        self._thread: int | None = None
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}  # the latest is the last
        _open.add(self)

    def get(self, width: int, height: int) -> mujoco.Renderer:
        """What draws pictures of a size [pixels].

        Raises:
            ValueError: There are no pictures of that size.
            RenderingUnavailable: There is nothing to draw with.
            RuntimeError: Another thread has drawn before.
        """
        thread = threading.get_ident()
        if self._thread not in (None, thread):
            raise RuntimeError("pictures belong to the thread that has drawn first; close() there")
        self._thread, size = thread, (width, height)
        renderer = self._renderers.pop(size, None)
        if renderer is None:
            if len(self._renderers) == self._most:
                self._renderers.pop(next(iter(self._renderers))).close()
            renderer = self._made(width, height)
        self._renderers[size] = renderer
        return renderer

    def belongs_to(self, thread: int) -> bool:
        """Whether this thread has drawn."""
        return self._thread == thread

    def close(self) -> None:
        """Free what draws, in the thread that has drawn; the next picture makes it anew."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
        self._thread = None

    def _made(self, width: int, height: int) -> mujoco.Renderer:
        if width < 1 or height < 1:
            raise ValueError(f"a picture has at least one pixel, got {width} x {height}")
        # MuJoCo draws into a buffer as large as the model says, however small the picture.
        limits = self._model.vis.global_
        before = limits.offwidth, limits.offheight
        limits.offwidth, limits.offheight = width, height
        try:
            renderer = mujoco.Renderer(self._model, height, width)
        except Exception as error:  # of whichever library should have made the context
            raise RenderingUnavailable(f"nothing can be drawn: {error}. {advice()}") from error
        finally:
            limits.offwidth, limits.offheight = before
        _close_at_exit()
        return renderer


def draw_depth(renderer: mujoco.Renderer) -> np.ndarray:
    """Draw the scene that a renderer has been given as distances.

    Returns:
        (height, width) float32, along the optical axis [m]; infinite where there is nothing before
        the far plane.
    """
    scene, n_geoms = renderer.scene, renderer.scene.ngeom
    renderer.enable_depth_rendering()
    try:
        picture = renderer.render()
        # What nothing looks like, to the bit: MuJoCo works out some distance near the far plane,
        # in single precision in part.
        scene.ngeom = 0
        nothing = renderer.render()[0, 0]
    finally:
        scene.ngeom = n_geoms
        renderer.disable_depth_rendering()
    picture[picture >= nothing] = np.inf
    return picture


@cache
def _close_at_exit() -> None:
    """To be called after MuJoCo made its first context.

    It registers then that OpenGL is to end at exit. What is registered later is called earlier.
    """
    atexit.register(_close_all)


def _close_all() -> None:
    for renderers in list(_open):
        if renderers.belongs_to(threading.get_ident()):
            renderers.close()
