"""Off-screen rendering of a scene."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from weakref import WeakSet

import mujoco
import numpy as np

from crazyflow_ros.opengl import advice

NEAR = 0.01
"""Distance of the near plane of cameras [m]: the lens of a Crazyflie that touches a wall is 2 cm
away from it."""
FAR = 10_000.0
"""Distance of the far plane of cameras [m].

MuJoCo's depth buffer has 32-bit floats, 1 at the near plane and 0 at the far plane: the resolution
is 1e-7 of the distance, however far the far plane is; orthographic pictures have 0.6 mm. With 24
bits, where OpenGL has no ARB_clip_control, it would be 0.6 mm at 10 m.
"""
FLOOR = 150.0
"""Distance up to which infinite planes are drawn [m]. MuJoCo divides them into 200 x 200 squares
and lights only their corners: twice as far, the cone of a lamp would no longer be round."""

_open: WeakSet[Renderers] = WeakSet()


class RenderingUnavailable(RuntimeError):
    """OpenGL is not available on this machine."""


class Renderers:
    """One renderer for each image size, with shadows and without, created on first use.

    OpenGL binds them to the first thread that renders.

    Args:
        model: The scene.
        most: Number of renderers to keep, those used last; None keeps all. With software rendering,
            a renderer takes some 150 MB, 64 of them for shadows.
        max_geom: Room for shapes in a picture.
        floor: Distance up to which infinite planes are drawn [m].
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        most: int | None = None,
        max_geom: int = 10_000,
        floor: float = FLOOR,
    ) -> None:
        self.model, self._most, self._max_geom, self._floor = model, most, max_geom, floor
        self._thread: int | None = None
        self._renderers: dict[tuple[int, int, bool], mujoco.Renderer] = {}  # in order of use
        _open.add(self)

    def get(self, width: int, height: int, *, shadows: bool = True) -> mujoco.Renderer:
        """Return the renderer for images of a size [pixels], with or without shadows.

        Raises:
            ValueError: The size is not positive.
            RenderingUnavailable: OpenGL is not available.
            RuntimeError: Another thread has rendered before.
        """
        thread = threading.get_ident()
        if self._thread not in (None, thread):
            raise RuntimeError("only the first thread that rendered may render; call close() there")
        self._thread, kind = thread, (width, height, shadows)
        renderer = self._renderers.pop(kind, None)
        if renderer is None:
            if len(self._renderers) == self._most:
                self._renderers.pop(next(iter(self._renderers))).close()
            renderer = self._made(*kind)
        self._renderers[kind] = renderer
        return renderer

    def update_scene(
        self,
        renderer: mujoco.Renderer,
        data: mujoco.MjData,
        camera: mujoco.MjvCamera,
        option: mujoco.MjvOption | None = None,
    ) -> None:
        """Fill the scene of one of the renderers as a camera sees it, from `NEAR` to `FAR`.

        The headlight is at the camera. MuJoCo's own update leaves it at the camera of the previous
        picture, so that pictures would depend on their order.
        """
        with _planes(self.model, self._floor):
            mujoco.mjv_updateCamera(self.model, data, camera, renderer.scene)
            renderer.update_scene(data, camera, option)
        for eye in renderer.scene.camera:
            eye.frustum_far = FAR

    def belongs_to(self, thread: int) -> bool:
        """Return whether this thread has rendered."""
        return self._thread == thread

    def close(self) -> None:
        """Free the renderers, in the thread that has rendered; the next image creates new ones."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
        self._thread = None

    def _made(self, width: int, height: int, shadows: bool) -> mujoco.Renderer:
        if width < 1 or height < 1:
            raise ValueError(f"an image must have at least one pixel, got {width} x {height}")
        # MuJoCo's buffer has the size given in the model, regardless of the size of the
        # image.
        limits, quality = self.model.vis.global_, self.model.vis.quality
        before = limits.offwidth, limits.offheight, quality.shadowsize
        limits.offwidth, limits.offheight = width, height
        if not shadows:
            quality.shadowsize = 0
        try:
            with _planes(self.model, self._floor):
                renderer = mujoco.Renderer(self.model, height, width, self._max_geom)
        except Exception as error:  # of any of the libraries that create contexts
            raise RenderingUnavailable(f"nothing can be drawn: {error}. {advice()}") from error
        finally:
            limits.offwidth, limits.offheight, quality.shadowsize = before
        _close_at_exit()
        return renderer


def opengl_device() -> str:
    """Return OpenGL's name of the device that it draws with.

    Raises:
        RenderingUnavailable: OpenGL is not available.
    """
    renderers = Renderers(mujoco.MjModel.from_xml_string("<mujoco/>"))
    try:
        renderers.get(8, 8, shadows=False)
        from OpenGL import GL  # after MuJoCo has chosen its library

        name = GL.glGetString(GL.GL_RENDERER) or b"unknown device"
    finally:
        renderers.close()
    return str(name, "utf-8", "replace")


def reach(model: mujoco.MjModel) -> float:
    """Return how far infinite planes have to be drawn where the whole world is in view [m]."""
    return max(FLOOR, float(model.vis.map.zfar * model.stat.extent))


def set_planes(model: mujoco.MjModel, far: float) -> None:
    """Set the planes of all cameras of a model to `NEAR` and to a distance [m].

    MuJoCo's planes are multiples of the model's extent: in a large world, cameras would look
    through near things, and in a small one they would not see far ones.
    """
    model.vis.map.znear, model.vis.map.zfar = NEAR / model.stat.extent, far / model.stat.extent


@contextmanager
def _planes(model: mujoco.MjModel, far: float) -> Iterator[None]:
    """Set the planes of the cameras until the end of the context, see `set_planes`."""
    before = model.vis.map.znear, model.vis.map.zfar
    set_planes(model, far)
    try:
        yield
    finally:
        model.vis.map.znear, model.vis.map.zfar = before


def draw_depth(renderer: mujoco.Renderer) -> np.ndarray:
    """Render the scene of a renderer as distances, after `Renderers.update_scene`.

    Returns:
        (height, width) float32, along the optical axis [m]; infinite where there is nothing before
        the far plane.
    """
    scene, n_geoms = renderer.scene, renderer.scene.ngeom
    renderer.enable_depth_rendering()
    try:
        with _planes(renderer.model, FAR):
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
