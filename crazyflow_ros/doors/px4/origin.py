"""Where the world is on earth, and what the sensors of an autopilot read there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crazyflow_ros.sensors.barometer import LAPSE_RATE, SEA_LEVEL_TEMPERATURE

_FREEZING = 273.15  # K


@dataclass(frozen=True)
class Origin:
    """The origin of the world."""

    latitude: float
    """Degrees."""
    longitude: float
    altitude: float
    """Above mean sea level [m]; the difference between that and the ellipsoid is neglected."""
    declination: float
    """Of the magnetic field, degrees, positive to the east."""
    inclination: float
    """Degrees, positive down."""
    strength: float
    """Microtesla."""

    @property
    def field(self) -> tuple[float, float, float]:
        """Magnetic field in axes east, north, up [T]."""
        declination, inclination = math.radians(self.declination), math.radians(self.inclination)
        strength = 1e-6 * self.strength
        level = strength * math.cos(inclination)
        return (
            level * math.sin(declination),
            level * math.cos(declination),
            -strength * math.sin(inclination),
        )

    def temperature(self, height: np.ndarray) -> np.ndarray:
        """Return temperatures [degrees Celsius] at heights above the origin [m]."""
        return SEA_LEVEL_TEMPERATURE - _FREEZING - LAPSE_RATE * (self.altitude + height)
