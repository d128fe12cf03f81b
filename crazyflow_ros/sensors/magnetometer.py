"""The earth's magnetic field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg
from crazyflow_ros.sensors.visualizer import Visualizer, draw_vector

CENTRAL_EUROPE: tuple[float, float, float] = (1.5e-6, 21e-6, -44e-6)
"""Approximate field near Munich in axes east, north, up [T]."""


@dataclass(kw_only=True)
class MagnetometerSensorCfg(FrameSensorCfg):
    """A magnetometer, exact by default.

    Raises:
        ValueError: The field is not a vector of three finite numbers.
    """

    field: tuple[float, float, float] = CENTRAL_EUROPE
    """Homogeneous field of the world [T]; that of the model is not used."""
    noise: NoiseCfg = EXACT
    """Errors of a reading [T]; the bias is the hard-iron effect."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.shape(self.field) != (3,) or not np.isfinite(self.field).all():
            raise ValueError(f"{self.name}: field must be three finite numbers, got {self.field}")
        self.noise.check(f"{self.name}: noise", 3)

    def build(self) -> MagnetometerSensor:
        """Build the sensor."""
        return MagnetometerSensor(self)


@dataclass(frozen=True)
class MagnetometerData:
    """Readings in B worlds."""

    magnetic_field: np.ndarray
    """Field in the axes of the frame [T], shape (B, 3)."""
    variance: np.ndarray
    """Variance of the white noise [T²], shape (3,)."""


class MagnetometerSensor(FrameSensor[MagnetometerSensorCfg, MagnetometerData]):
    """Samples the field in the axes of its frame."""

    def initialize(self, backend: Backend) -> None:
        """Find the frame and prepare the noise."""
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, 3)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the direction of the field."""
        if self.cfg.debug_vis:
            position, axes = (np.asarray(part) for part in self.backend.frame(self.cfg.frame))
            for world in visualizer.worlds:
                field = axes[world] @ self.data.magnetic_field[world]
                strength = np.linalg.norm(field) or 1.0
                draw_vector(visualizer, position[world], field / strength, (0.6, 0.0, 0.8, 1.0))

    def _measure(self, dt: float) -> np.ndarray:
        axes = np.asarray(self.backend.frame(self.cfg.frame)[1])
        return self._errors.apply(np.array(self.cfg.field) @ axes, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> MagnetometerData:
        return MagnetometerData(sample, self._errors.variance(dt))
