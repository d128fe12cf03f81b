"""Satellite navigation: latitude, longitude and altitude on the WGS 84 ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg

_RADIUS = 6_378_137.0  # m, WGS 84 at the equator
_FLATTENING = 1 / 298.257223563
_ECCENTRICITY_2 = _FLATTENING * (2 - _FLATTENING)
_ITERATIONS = 5  # each reduces the error of the latitude about a hundredfold


@dataclass(kw_only=True)
class GnssSensorCfg(FrameSensorCfg):
    """A receiver, exact by default.

    Raises:
        ValueError: The origin is not a place on earth.
    """

    latitude: float
    """Latitude of the world's origin [degrees]."""
    longitude: float
    """Longitude of the world's origin [degrees]."""
    altitude: float = 0.0
    """Altitude of the world's origin above the ellipsoid [m]."""
    noise: NoiseCfg = EXACT
    """Errors of the position in axes east, north, up [m]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -90.0 <= self.latitude <= 90.0:
            rule = "from -90 to 90 degrees"
            raise ValueError(f"{self.name}: latitude must be {rule}, got {self.latitude:g}")
        if not -180.0 <= self.longitude <= 180.0:
            rule = "from -180 to 180 degrees"
            raise ValueError(f"{self.name}: longitude must be {rule}, got {self.longitude:g}")
        if not math.isfinite(self.altitude):
            raise ValueError(f"{self.name}: altitude must be finite, got {self.altitude}")
        self.noise.check(f"{self.name}: noise", 3)

    def build(self) -> GnssSensor:
        """Build the sensor."""
        return GnssSensor(self)


@dataclass(frozen=True)
class GnssData:
    """Fixes in B worlds."""

    latitude: np.ndarray
    """Degrees, shape (B,)."""
    longitude: np.ndarray
    """Degrees in (-180, 180], shape (B,)."""
    altitude: np.ndarray
    """Above the ellipsoid [m], shape (B,)."""
    variance: np.ndarray
    """Variance of the white noise east, north and up [m²], shape (3,)."""


class GnssSensor(FrameSensor[GnssSensorCfg, GnssData]):
    """Samples the position. The world is flat: it touches the ellipsoid in its origin."""

    def initialize(self, backend: Backend) -> None:
        """Find the frame and prepare the noise."""
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, 3)

    def _measure(self, dt: float) -> np.ndarray:
        position = np.asarray(self.backend.frame(self.cfg.frame)[0])
        return self._errors.apply(position, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> GnssData:
        cfg = self.cfg
        fix = enu_to_geodetic(sample, cfg.latitude, cfg.longitude, cfg.altitude)
        return GnssData(*fix, self._errors.variance(dt))


def enu_to_geodetic(
    enu: np.ndarray, latitude: float, longitude: float, altitude: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Convert points in axes east, north, up to latitude, longitude [degrees] and altitude [m].

    Args:
        enu: Points (N, 3) [m], from the origin of the axes.
        latitude: Latitude of the origin [degrees].
        longitude: Longitude of the origin [degrees].
        altitude: Altitude of the origin above the ellipsoid [m].
    """
    origin, axes = _tangent_plane(latitude, longitude, altitude)
    x, y, z = (origin + enu @ axes).T
    axial = np.hypot(x, y)
    angle = np.arctan2(z, axial * (1 - _ECCENTRICITY_2))
    for _ in range(_ITERATIONS):
        sine = np.sin(angle)
        radius = _RADIUS / np.sqrt(1 - _ECCENTRICITY_2 * sine**2)
        angle = np.arctan2(z + _ECCENTRICITY_2 * radius * sine, axial)
    sine = np.sin(angle)
    flatter = 1 - _ECCENTRICITY_2 * sine**2
    # Not axial / cos(angle) - radius, which fails at the poles.
    height = axial * np.cos(angle) + z * sine - _RADIUS / np.sqrt(flatter) * flatter
    return np.degrees(angle), np.degrees(np.arctan2(y, x)), height


@lru_cache
def _tangent_plane(
    latitude: float, longitude: float, altitude: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return origin (3,) [m] and axes (3, 3), rows, of a flat world, from the centre of the earth.

    Callers must not write to them.
    """
    phi, lam = math.radians(latitude), math.radians(longitude)
    east = np.array([-math.sin(lam), math.cos(lam), 0.0])
    up = np.array([math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)])
    north = np.cross(up, east)
    prime_vertical = _RADIUS / math.sqrt(1 - _ECCENTRICITY_2 * math.sin(phi) ** 2)
    origin = (prime_vertical + altitude) * up
    origin[2] -= _ECCENTRICITY_2 * prime_vertical * math.sin(phi)
    return origin, np.stack([east, north, up])
