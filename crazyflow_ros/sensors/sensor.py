"""The life cycle that all sensors share.

A configuration builds a sensor; the sensor edits the specification, is initialised once the model
is compiled, and is then updated, read and reset. `SensorSet` does this for many at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import mujoco
import numpy as np

from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.objects import Mount, ObjRef
from crazyflow_ros.sensors.visualizer import Visualizer

T = TypeVar("T")

WorldIds: TypeAlias = Sequence[int] | np.ndarray | slice | None
"""Indices of worlds; None for all."""


@dataclass
class SensorCfg(ABC):
    """Base configuration of a sensor."""

    name: str
    """Name of the sensor, unique in the model."""
    debug_vis: bool = field(default=False, kw_only=True)
    """Whether `debug_vis` draws."""

    @abstractmethod
    def build(self) -> Sensor[Any]:
        """Build the sensor, not yet part of a model."""


class Sensor(ABC, Generic[T]):
    """A sensor with data of type T.

    `data` is computed when it is first read and kept until `update` or `reset`. Methods
    that override these or `initialize` call `super()` first.
    """

    requires_sensor_context = False
    """Whether the readings are taken by a `SensorContext`, when it senses."""

    def __init__(self) -> None:
        self._cached: T | None = None
        self._backend: Backend | None = None

    @abstractmethod
    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add what the sensor needs to the specification.

        Raises:
            ValueError: The sensor refers to a missing object, or its name is taken.
        """

    def initialize(self, backend: Backend) -> None:
        """Find the sensor's parts in the compiled model, and read from `backend` from now on.

        Raises:
            ValueError: The model lacks a part, or the back end cannot do what the sensor needs.
        """
        self._backend = backend

    @property
    def backend(self) -> Backend:
        """The back end that it reads from.

        Raises:
            RuntimeError: The sensor has not been initialised.
        """
        if self._backend is None:
            raise RuntimeError(f"{type(self).__name__}: call initialize() first")
        return self._backend

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """Objects that the sensor is fixed to, whose axes are those of its readings."""
        return ()

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Places of `frames` on their bodies."""
        return tuple(frame.mount(self.backend.model) for frame in self.frames)

    @property
    def age(self) -> float:
        """Age of the readings in `data` [s] at the last `update` or `sense`."""
        return 0.0

    @property
    def data(self) -> T:
        """The readings; the same object until the next `update` or `reset`."""
        if self._cached is None:
            self._cached = self._compute_data()
        return self._cached

    def _compute_data(self) -> T:
        """Return the readings of this moment, unless the sensor has `data` of its own."""
        raise NotImplementedError

    def update(self, dt: float) -> None:
        """Handle an advance of the simulation by `dt` [s]."""
        del dt
        self._cached = None

    def reset(self, ids: WorldIds = None) -> None:
        """Handle a reset of worlds."""
        del ids
        self._cached = None

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the readings, if the configuration has `debug_vis`."""
