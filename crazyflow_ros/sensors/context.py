"""Cameras and rays of a model: they sense at the same moment, and share a renderer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

import mujoco
import numpy as np

from crazyflow_ros.checks.entry_points import load
from crazyflow_ros.scene.renderers import Renderers
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.rendering import RENDERERS, Room
from crazyflow_ros.sensors.sensor import Sensor

T = TypeVar("T")


class ContextSensor(Sensor[T]):
    """A sensor that takes its readings on request, because rays and pictures are expensive.

    `update` and `reset` keep `data` until the next `sense` (in mjlab it is zero before the first
    one; here reading it is an error).
    """

    requires_sensor_context = True
    is_camera = False
    """Whether it draws; otherwise it casts rays."""

    @property
    def camera_idx(self) -> int:
        """Id of the camera in the model that it draws from; -1 if it casts rays."""
        return -1

    def __init__(self) -> None:
        super().__init__()
        self._sensed: T | None = None
        self._context: SensorContext | None = None

    @property
    def data(self) -> T:
        """The readings of the last `sense`.

        Raises:
            RuntimeError: The sensor has not sensed yet.
        """
        if self._sensed is None:
            raise RuntimeError("nothing sensed yet: call sense() first")
        return self._sensed

    def sense(self) -> None:
        """Take the readings of this moment."""
        self._sensed = self._sense()

    def set_context(self, context: SensorContext) -> None:
        """Use the resources of a context."""
        self._context = context

    @property
    def context(self) -> SensorContext:
        """The context, which the sensor shares with others.

        Raises:
            RuntimeError: The sensor has joined no context.
        """
        if self._context is None:
            raise RuntimeError(f"{type(self).__name__}: call set_context() first")
        return self._context

    @abstractmethod
    def _sense(self) -> T:
        """Return the readings of this moment."""


class SensorContext:
    """All cameras and rays of a model.

    Cameras draw with OpenGL, whose context belongs to the thread that has called `sense` first.

    Args:
        backend: Back end that the sensors read from.
        sensors: Sensors. Those that need a context join this one.
        room: Shared by contexts that replace one another; see `Room`.
    """

    def __init__(
        self, backend: Backend, sensors: Iterable[Sensor[Any]], room: Room | None = None
    ) -> None:
        self._sensors = [sensor for sensor in sensors if isinstance(sensor, ContextSensor)]
        self._model, self._room = backend.model, room
        self._others: dict[str, Any] = {}
        self.renderers = Renderers(backend.model)
        """The renderer of the pictures with OpenGL."""
        for sensor in self._sensors:
            sensor.set_context(self)

    def sense(self) -> None:
        """Let all sensors sense.

        Raises:
            RenderingUnavailable: There are cameras, and no OpenGL to draw with.
        """
        for sensor in self._sensors:
            sensor.sense()

    def renderer(self, name: str) -> Any:
        """Return a `CameraRenderer`, another renderer than OpenGL; all cameras share it.

        Args:
            name: Name of an entry point of `RENDERERS`.

        Raises:
            ValueError: No package offers it, or it cannot be loaded.
        """
        if name not in self._others:
            self._others[name] = load(RENDERERS, name, "renderer")(self._model, self._room)
        return self._others[name]

    @property
    def has_cameras(self) -> bool:
        """Whether some of the sensors draw."""
        return any(sensor.is_camera for sensor in self._sensors)

    @property
    def has_raycasts(self) -> bool:
        """Whether some of the sensors cast rays."""
        return any(not sensor.is_camera for sensor in self._sensors)

    def get_rgb(self, cam_idx: int) -> np.ndarray:
        """Return the pictures of a camera, shape (B, height, width, 3), uint8.

        Args:
            cam_idx: Its id in the model.

        Raises:
            ValueError: No sensor takes such pictures with this camera.
        """
        return self._pictures("rgb", cam_idx)

    def get_depth(self, cam_idx: int) -> np.ndarray:
        """Return depth images [m], shape (B, height, width, 1), float32; see `get_rgb`."""
        return self._pictures("depth", cam_idx)

    def get_segmentation(self, cam_idx: int) -> np.ndarray:
        """Return segmentations, shape (B, height, width, 2), int32; see `get_rgb`."""
        return self._pictures("segmentation", cam_idx)

    def _pictures(self, kind: str, cam_idx: int) -> np.ndarray:
        for sensor in self._sensors:
            if sensor.is_camera and sensor.camera_idx == cam_idx:
                pictures: np.ndarray | None = getattr(sensor.data, kind)
                if pictures is not None:
                    return pictures
        raise ValueError(f"no sensor takes {kind} with the camera {cam_idx}")

    def recreate(self, mj_model: mujoco.MjModel) -> None:
        """Take over changed textures, meshes and height fields of a model.

        The renderer keeps copies of these. Other changes need no call, and rays need none. Call it
        in the thread that draws.

        Args:
            mj_model: The model of the back end, or one like it.

        Raises:
            ValueError: The model has other sizes; the sensors have to be initialised anew.
        """
        if (sizes := _sizes(mj_model)) != (own := _sizes(self._model)):
            raise ValueError(f"the model must have the sizes {own}, got {sizes}")
        self.renderers.close()
        self._model, self._others = mj_model, {}
        self.renderers = Renderers(mj_model)

    def close(self) -> None:
        """Free the renderer."""
        self.renderers.close()


def _sizes(model: mujoco.MjModel) -> dict[str, int]:
    return {name: getattr(model, name) for name in ("nbody", "ngeom", "ncam", "nq", "nmesh")}
