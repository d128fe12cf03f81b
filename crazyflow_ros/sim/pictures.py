"""Pictures of a scene, its window, and the markers that are drawn in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

from crazyflow_ros.opengl import has_display
from crazyflow_ros.scene.markers import Marker, add_markers
from crazyflow_ros.scene.renderers import (
    Renderers,
    RenderingUnavailable,
    draw_depth,
    reach,
    set_planes,
)
from crazyflow_ros.scene.view import move, view_of

_SIZES = 4  # sizes of images, for which renderers are cached
_GEOMS = 10_000  # room for shapes of the scene, MuJoCo's default


class Pictures:
    """Renderers of one model for the latest sizes of pictures, and a window.

    Args:
        model: The scene.
        max_markers: Maximum number of markers in a picture.

    Attributes:
        viewer: The handle of the window, None before it is opened.
    """

    def __init__(self, model: mujoco.MjModel, max_markers: int) -> None:
        self._model = model
        self._renderers = Renderers(model, _SIZES, _GEOMS + max_markers, reach(model))
        self.viewer: Any = None
        self._asked: object = None  # camera and configuration of the window
        self._has_markers = False

    def draw(
        self,
        data: mujoco.MjData,
        mode: str,
        view: tuple[int | str, Mapping[str, Any] | None],
        size: tuple[int, int],
        markers: Sequence[Marker],
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Draw colours, depth or both; see `Sim.render`.

        Depth does not contain the markers.
        """
        camera = view_of(self._model, *view)
        renderer = self._renderers.get(*size)
        self._renderers.update_scene(renderer, data, camera)
        pictures = []
        if mode != "rgb_array":
            pictures.append(draw_depth(renderer))
        if mode != "depth_array":
            add_markers(renderer.scene, markers)
            pictures.insert(0, renderer.render())
        return pictures[0] if len(pictures) == 1 else (pictures[0], pictures[1])

    def show(
        self,
        data: mujoco.MjData,
        view: tuple[int | str, Mapping[str, Any] | None],
        markers: Sequence[Marker],
    ) -> None:
        """Show the scene in the window; the first call opens the window.

        The camera moves only when another view is requested, so that the mouse can move it
        meanwhile.
        """
        camera = view_of(self._model, *view)
        if self.viewer is None:
            if not has_display():  # the library of the viewer would end the process
                raise RenderingUnavailable(
                    "mode 'human' opens a window, and there is no display; 'rgb_array' needs none"
                )
            from mujoco import viewer

            set_planes(self._model, reach(self._model))
            self.viewer, self._asked = viewer.launch_passive(self._model, data), repr((-1, None))
        if repr(view) != self._asked:
            self._asked = repr(view)
            with self.viewer.lock():
                move(self.viewer.cam, camera)
        if markers or self._has_markers:
            self._has_markers = bool(markers)
            with self.viewer.lock():
                self.viewer.user_scn.ngeom = 0
                add_markers(self.viewer.user_scn, markers)
        self.viewer.sync()

    def close(self) -> None:
        """Close the window, and free the renderers."""
        if self.viewer is not None:
            self.viewer.close()
            self.viewer = None
        self._renderers.close()
