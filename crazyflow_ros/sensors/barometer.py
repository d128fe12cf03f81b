"""Air pressure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT, NoiseCfg
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg

# The international standard atmosphere up to 11 km, ISO 2533.
SEA_LEVEL_PRESSURE = 101_325.0
"""Pa."""
_SEA_LEVEL_TEMPERATURE = 288.15  # K
_LAPSE_RATE = 0.0065  # K/m
BMP388 = NoiseCfg(std=1.2, bias=8.0)
"""Noise of the Crazyflie's barometer [Pa] by its datasheet BST-BMP388-DS001: 1.2 Pa, 10 cm of
height; the relative accuracy of ±8 Pa, 0.66 m, is taken for a standard deviation."""
_EXPONENT = 9.80665 * 0.0289644 / (8.31446261815324 * _LAPSE_RATE)  # g M / (R L)


@dataclass(kw_only=True)
class BarometerSensorCfg(FrameSensorCfg):
    """A barometer; exact unless told otherwise."""

    altitude: float = 0.0
    """Of the world's origin above sea level [m]."""
    sea_level_pressure: float = SEA_LEVEL_PRESSURE
    """Of the day [Pa]."""
    noise: NoiseCfg = EXACT
    """Errors of the pressure [Pa]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sea_level_pressure > 0.0:
            raise ValueError(f"{self.name}: sea_level_pressure {self.sea_level_pressure} Pa")

    def build(self) -> BarometerSensor:
        """Build the sensor."""
        return BarometerSensor(self)


@dataclass(frozen=True)
class BarometerData:
    """Readings in B worlds."""

    pressure: np.ndarray
    """Pa, shape (B,)."""
    variance: float
    """Variance of the white noise [Pa²]."""


class BarometerSensor(FrameSensor[BarometerSensorCfg, BarometerData]):
    """Samples the standard atmosphere."""

    def initialize(self, backend: Backend) -> None:
        """Find the frame, and begin to err."""
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, 1)

    def _measure(self, dt: float) -> np.ndarray:
        height = np.asarray(self.backend.frame(self.cfg.frame)[0])[:, 2:] + self.cfg.altitude
        ratio = (1.0 - _LAPSE_RATE * height / _SEA_LEVEL_TEMPERATURE) ** _EXPONENT
        return self._errors.apply(self.cfg.sea_level_pressure * ratio, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> BarometerData:
        return BarometerData(sample[:, 0], float(self.cfg.noise.variance(dt, 1)[0]))
