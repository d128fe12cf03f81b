"""Air pressure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg

# The international standard atmosphere up to 20 km, ISO 2533: Pa, K and K/m.
SEA_LEVEL_PRESSURE, SEA_LEVEL_TEMPERATURE, LAPSE_RATE = 101_325.0, 288.15, 0.0065
_TROPOPAUSE = 11_000.0  # m, above which the temperature is constant
_LOWEST, _HIGHEST = -2_000.0, 20_000.0  # m, limits of the modelled layers
BMP388 = NoiseCfg(std=1.2, bias=8.0)
"""Noise of the Crazyflie's barometer [Pa] by its datasheet BST-BMP388-DS001: 1.2 Pa, 10 cm of
height; the relative accuracy of ±8 Pa, 0.66 m, is taken for a standard deviation."""
_AIR = 9.80665 * 0.0289644 / 8.31446261815324  # g M / R, K/m


def standard_altitude(pressure: np.ndarray) -> np.ndarray:
    """Return the altitudes [m] of pressures [Pa] in the standard atmosphere, up to 11 km."""
    ratio = np.maximum(pressure, 1.0) / SEA_LEVEL_PRESSURE
    return SEA_LEVEL_TEMPERATURE / LAPSE_RATE * (1 - ratio ** (LAPSE_RATE / _AIR))


@dataclass(kw_only=True)
class BarometerSensorCfg(FrameSensorCfg):
    """A barometer, exact by default.

    Raises:
        ValueError: The altitude or the pressure is out of range.
    """

    altitude: float = 0.0
    """Altitude of the world's origin above sea level [m], -2000 to 20000."""
    sea_level_pressure: float = SEA_LEVEL_PRESSURE
    """Pressure at sea level [Pa]."""
    noise: NoiseCfg = EXACT
    """Errors of the pressure [Pa]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LOWEST <= self.altitude <= _HIGHEST:
            limits = f"from {_LOWEST:.0f} to {_HIGHEST:.0f} m"
            raise ValueError(f"{self.name}: altitude must be {limits}, got {self.altitude:g}")
        if not 0.0 < self.sea_level_pressure < math.inf:
            got = f"got {self.sea_level_pressure:g} Pa"
            raise ValueError(f"{self.name}: sea_level_pressure must be positive, {got}")
        self.noise.check(f"{self.name}: noise", 1)

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
        """Find the frame and prepare the noise."""
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, 1)

    def _measure(self, dt: float) -> np.ndarray:
        height = np.asarray(self.backend.frame(self.cfg.frame)[0])[:, 2:] + self.cfg.altitude
        below = np.minimum(height, _TROPOPAUSE)
        temperature = SEA_LEVEL_TEMPERATURE - LAPSE_RATE * below
        ratio = (temperature / SEA_LEVEL_TEMPERATURE) ** (_AIR / LAPSE_RATE)
        ratio *= np.exp(-_AIR * (height - below) / temperature)
        return self._errors.apply(self.cfg.sea_level_pressure * ratio, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> BarometerData:
        return BarometerData(sample[:, 0], float(self._errors.variance(dt)[0]))
