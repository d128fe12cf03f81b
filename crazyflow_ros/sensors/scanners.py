"""Lidars that scan while they move: where their rays go, and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import mujoco
import numpy as np

from crazyflow_ros.sensors.patterns import MOST_RAYS, LidarPatternCfg, Rays
from crazyflow_ros.sensors.raycast import RaysCfg

_TOGETHER, _LINES = 5, 4  # shots of a Mid-360 that share a pose, and lasers of a shot
_TURNS, _WAVES = 10.0, 50.0 * (1.0 + math.sqrt(5.0))  # Hz


class SweepPatternCfg(Protocol):
    """A pattern of rays that leave one after another, in columns of R that leave at once."""

    one_origin: bool
    """All rays start in the origin of the frame."""

    @property
    def rings(self) -> np.ndarray:
        """Number of the laser of each ray of a column, shape (R,)."""

    def sweep(self, start: float, period: float) -> np.ndarray:
        """Return the rays of a period, C columns at equal distances of time.

        Args:
            start: Simulated time of the first column [s].
            period: Time until the first column of the next sweep [s].

        Returns:
            Unit vectors in the axes of the frame, shape (C, R, 3).
        """


@dataclass(frozen=True)
class SpinningPatternCfg:
    """Spinning pattern: columns that turn about z, clockwise seen from above, as mirrors do."""

    elevations: Sequence[float] = (0.0,)
    """Elevation of each ring [degrees]."""
    samples: int = 1808
    """Columns of a turn, which takes a period of the sensor."""
    first_azimuth: float = 0.0
    """Azimuth of the first column, counterclockwise from x [degrees]."""
    one_origin = True

    def __post_init__(self) -> None:
        if not abs(self.first_azimuth) <= 360.0:  # the sines of much larger ones are noise
            rule = "must be from -360 to 360 degrees"
            raise ValueError(f"first_azimuth {rule}, got {self.first_azimuth:g}")
        LidarPatternCfg(self.elevations, self.samples)  # which checks them

    @property
    def rings(self) -> np.ndarray:
        """See `SweepPatternCfg`."""
        return np.arange(len(self.elevations))

    def sweep(self, start: float, period: float) -> np.ndarray:
        """See `SweepPatternCfg`; every turn is the same."""
        del start, period
        turned = np.arange(self.samples)[:, None] * (360.0 / self.samples)
        return _directions(np.radians(self.first_azimuth - turned), np.radians(self.elevations))

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """Return the rays of a turn."""
        del model
        return _rays(self.sweep(0.0, 1.0))


@dataclass(frozen=True)
class Mid360PatternCfg:
    """The pattern of a Livox Mid-360: four lasers in waves around z, which never repeat.

    Livox publishes the field of view, the number of points and pictures, but no formula. Here the
    lasers, a right angle apart, turn ten times a second while their elevation rises and falls at
    162 Hz; the golden ratio in this number keeps all turns apart.
    """

    points: int = 200_000
    """Points a second."""
    elevation_range: tuple[float, float] = (-7.0, 52.0)
    """Lowest and highest elevation [degrees]."""
    one_origin = True

    def __post_init__(self) -> None:
        LidarPatternCfg(self.elevation_range)  # which checks them
        if not 0 < self.points <= MOST_RAYS:
            raise ValueError(f"points must be from 1 to {MOST_RAYS} a second, got {self.points}")

    @property
    def rings(self) -> np.ndarray:
        """See `SweepPatternCfg`."""
        return np.tile(np.arange(_LINES), _TOGETHER)

    def sweep(self, start: float, period: float) -> np.ndarray:
        """See `SweepPatternCfg`."""
        columns = max(1, round(self.points * period / len(self.rings)))
        time = start + period * np.arange(columns * _TOGETHER)[:, None] / (columns * _TOGETHER)
        line, (low, high) = np.arange(_LINES), np.radians(self.elevation_range)
        wave = np.abs((_WAVES * time + line / (2 * _LINES)) % 1.0 * 2.0 - 1.0)
        azimuth = -math.tau * (_TURNS * time + line / _LINES)
        return _directions(azimuth, low + (high - low) * wave).reshape(columns, -1, 3)

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        """Return the rays of the first tenth of a second."""
        del model
        return _rays(self.sweep(0.0, 0.1))


@dataclass(kw_only=True)
class ScannerCfg(RaysCfg):
    """A lidar whose rays leave one after another while it moves, by a `SweepPatternCfg`.

    Raises:
        ValueError: The rays of the pattern are in no rows.
    """

    driver: Literal["velodyne", "ouster", "livox"] = "velodyne"
    """Whose layout of points the messages have."""
    organized: bool = False
    """Whether clouds have a row for each ring, with NaN where nothing was hit. By default they have
    the points that were hit, in the order of time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.organized and isinstance(self.pattern, Mid360PatternCfg):
            raise ValueError(f"{self.name}: the points of a Mid-360 are in no rows, got organized")


def _directions(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    level = np.cos(elevation)
    parts = level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def _rays(directions: np.ndarray) -> Rays:
    flat = directions.reshape(-1, 3)
    return Rays(np.zeros_like(flat), flat)
