"""Time-of-flight distance sensors: the Crazyflie's Z-ranger, Flow and Multi-ranger decks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import mujoco
import numpy as np

from crazyflow_ros.drones.deck_optics import nearest_target
from crazyflow_ros.drones.instruments import (
    MULTI_RANGER,
    VL53L1X,
    VL53L1X_FIELD_OF_VIEW,
    VL53L1X_MAX_RANGE,
    VL53L1X_MIN_RANGE,
    NoiseCfg,
)
from crazyflow_ros.scene.surfaces import surfaces
from crazyflow_ros.sensors.backend import Backend, Limits
from crazyflow_ros.sensors.patterns import ConePatternCfg, Vector
from crazyflow_ros.sensors.raycast import COLLISIONS, RayCastSensor, RayCastSensorCfg
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg
from crazyflow_ros.sensors.visualizer import Visualizer

DOWN: tuple[Vector, ...] = ((0.0, 0.0, -1.0),)
"""Direction of the Z-ranger and Flow decks."""

B = TypeVar("B", bound="BeamSensorCfg")
T = TypeVar("T")


@dataclass(kw_only=True)
class BeamSensorCfg(FrameSensorCfg):
    """Base configuration of sensors that sample what beams from their frame hit.

    Raises:
        ValueError: The ranges are not an interval.
    """

    min_range: float = 0.0
    """Shortest distance at which something is measured [m]."""
    max_range: float = 10.0
    """Longest distance [m]."""
    include_geom_groups: tuple[int, ...] | None = COLLISIONS
    """Geom groups that beams hit: the world, and the collision shapes of drones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.min_range < self.max_range:
            rule = f"from 0 to less than max_range, {self.max_range:g} m"
            raise ValueError(f"{self.name}: min_range must be {rule}, got {self.min_range:g}")


class BeamSensor(FrameSensor[B, T]):
    """A sensor that samples beams; its readings are those of `deck_optics.nearest_target`.

    Args:
        cfg: The configuration.
        pattern: The n beams in the axes of the frame.
    """

    def __init__(self, cfg: B, pattern: ConePatternCfg) -> None:
        super().__init__(cfg)
        rays = RayCastSensorCfg(
            name=cfg.name,
            frame=cfg.frame,
            pattern=pattern,
            max_distance=cfg.max_range,
            include_geom_groups=cfg.include_geom_groups,
            debug_vis=cfg.debug_vis,
            viz=RayCastSensorCfg.VizCfg(show_rays=True),
        )
        self._rays = _Bundles(rays, pattern, self._limits)

    def _limits(self, model: mujoco.MjModel) -> tuple[float | np.ndarray, np.ndarray | None]:
        """Say how far rays hit, see `Limits`."""
        del model
        return self.cfg.max_range, None

    def initialize(self, backend: Backend) -> None:
        """Prepare the beams."""
        super().initialize(backend)
        self._rays.initialize(backend)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the beams of the last `update`."""
        self._rays.debug_vis(visualizer)

    def _distances(self) -> np.ndarray:
        """Cast the rays; return distances [m], (B, n), -1 where nothing is hit."""
        self._rays.sense()
        nearest = nearest_target(np.moveaxis(self._rays.bundles(), -1, 0))
        return np.where(np.isfinite(nearest), nearest, -1.0)


@dataclass(kw_only=True)
class RangerSensorCfg(BeamSensorCfg):
    """Time-of-flight distance sensors on a drone, by default a VL53L1X."""

    directions: tuple[Vector, ...] = MULTI_RANGER
    """Directions of the n beams in the axes of the frame, by default those of a Multi-ranger."""
    min_range: float = VL53L1X_MIN_RANGE
    """Shortest range [m]."""
    max_range: float = VL53L1X_MAX_RANGE
    """Longest range [m]."""
    field_of_view: float = VL53L1X_FIELD_OF_VIEW
    """Full angle of the cone of a beam [rad]; 0 for a single ray."""
    by_reflectance: bool = True
    """Whether surfaces are seen as far as their reflectance allows, see `deck_optics.reach`;
    otherwise, all are seen up to `max_range`."""
    noise: NoiseCfg = VL53L1X
    """Errors of a distance [m]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.directions:
            raise ValueError(f"{self.name}: directions is empty")
        try:
            self.pattern  # noqa: B018
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        self.noise.check(f"{self.name}: noise", 1)

    @property
    def pattern(self) -> ConePatternCfg:
        """The rays."""
        return ConePatternCfg(self.directions, self.field_of_view)

    def build(self) -> RangerSensor:
        """Build the sensor."""
        return RangerSensor(self)


@dataclass(frozen=True)
class RangerData:
    """Readings in B worlds."""

    ranges: np.ndarray
    """Distance along each beam [m], shape (B, n); infinite if nothing is within reach, negative
    infinite if something is too near (REP 117)."""
    variance: np.ndarray
    """Variance of the white noise of each reading [m²], shape (B, n); 0 without one."""


class RangerSensor(BeamSensor[RangerSensorCfg, RangerData]):
    """Samples all beams at once. They start from the frame."""

    def __init__(self, cfg: RangerSensorCfg) -> None:
        super().__init__(cfg, cfg.pattern)

    def initialize(self, backend: Backend) -> None:
        """Prepare the beams and the noise."""
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, len(self.cfg.directions))

    def _limits(self, model: mujoco.MjModel) -> tuple[float | np.ndarray, np.ndarray | None]:
        return self.cfg.max_range, surfaces(model)[:, 0] if self.cfg.by_reflectance else None

    def _measure(self, dt: float) -> np.ndarray:
        truth = self._distances()
        ranges = self._errors.apply(truth, dt)
        ranges[(truth < 0.0) | (ranges > self.cfg.max_range)] = np.inf
        ranges[ranges < self.cfg.min_range] = -np.inf
        return ranges

    def _decode(self, sample: np.ndarray, dt: float) -> RangerData:
        finite = np.isfinite(sample)
        spread = self.cfg.noise.spread(np.where(finite, sample, 0.0))
        variance = self._errors.variance(dt)[0] * spread**2
        return RangerData(sample, np.where(finite, variance, 0.0))


class _Bundles(RayCastSensor):
    """Bundles of rays.

    Args:
        cfg: The configuration.
        pattern: Its pattern.
        limits: Says how far rays hit.
    """

    def __init__(
        self,
        cfg: RayCastSensorCfg,
        pattern: ConePatternCfg,
        limits: Limits,
    ) -> None:
        super().__init__(cfg)
        self._shape, self._limits = pattern.shape, limits

    def limits(self, model: mujoco.MjModel) -> tuple[float | np.ndarray, np.ndarray | None]:
        """See `RayCastSensor`."""
        return self._limits(model)

    def bundles(self) -> np.ndarray:
        """Return distances (B, n, R) [m], infinite where nothing is hit."""
        distances = np.asarray(self.data.distances)
        return np.where(distances < 0.0, np.inf, distances).reshape(-1, *self._shape)

    def shown(self, world: int) -> Iterable[int]:
        """Return the nearest ray of each bundle; its axis if nothing is hit."""
        n, rays = self._shape
        bundles = self.bundles()[world]
        reading = nearest_target(bundles.T)
        away = np.abs(bundles - np.where(np.isfinite(reading), reading, 0.0)[:, None])
        found: list[int] = (away.argmin(axis=1) + rays * np.arange(n)).tolist()
        return found
