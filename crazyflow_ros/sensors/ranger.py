"""Time-of-flight distance sensors: the Crazyflie's Z-ranger, Flow and Multi-ranger decks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import (
    MULTI_RANGER,
    VL53L1X,
    VL53L1X_MAX_RANGE,
    VL53L1X_MIN_RANGE,
    NoiseCfg,
)
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.patterns import Rays, Vector
from crazyflow_ros.sensors.raycast import COLLISIONS, RayCastSensorCfg
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
    """A sensor that samples beams; the reading of a beam is that of the ray in its centre.

    Args:
        cfg: The configuration.
        directions: Directions of the n beams in the axes of the frame.
    """

    def __init__(self, cfg: B, directions: Sequence[Vector]) -> None:
        super().__init__(cfg)
        self._rays = RayCastSensorCfg(
            name=cfg.name,
            frame=cfg.frame,
            pattern=_Beams(directions),
            max_distance=cfg.max_range,
            include_geom_groups=cfg.include_geom_groups,
            debug_vis=cfg.debug_vis,
            viz=RayCastSensorCfg.VizCfg(show_rays=True),
        ).build()

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
        return np.asarray(self._rays.data.distances)


@dataclass(kw_only=True)
class RangerSensorCfg(BeamSensorCfg):
    """Distance sensors on a drone, by default a Multi-ranger deck of VL53L1x."""

    directions: tuple[Vector, ...] = MULTI_RANGER
    """Directions of the n beams in the axes of the frame."""
    min_range: float = VL53L1X_MIN_RANGE
    """Shortest range [m]."""
    max_range: float = VL53L1X_MAX_RANGE
    """Longest range [m]."""
    noise: NoiseCfg = VL53L1X
    """Errors of a distance [m]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.directions:
            raise ValueError(f"{self.name}: directions is empty")
        self.noise.check(f"{self.name}: noise", 1)

    def build(self) -> RangerSensor:
        """Build the sensor."""
        return RangerSensor(self)


@dataclass(frozen=True)
class RangerData:
    """Readings in B worlds."""

    ranges: np.ndarray
    """Distance along each beam [m], shape (B, n); infinite if nothing is within reach, negative
    infinite if something is too near (REP 117)."""
    variance: float
    """Variance of the white noise [m²]."""


class RangerSensor(BeamSensor[RangerSensorCfg, RangerData]):
    """Samples all beams at once. They start from the frame."""

    def __init__(self, cfg: RangerSensorCfg) -> None:
        super().__init__(cfg, cfg.directions)

    def initialize(self, backend: Backend) -> None:
        """Prepare the beams and the noise."""
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, len(self.cfg.directions))

    def _measure(self, dt: float) -> np.ndarray:
        truth = self._distances()
        ranges = self._errors.apply(truth, dt)
        ranges[(truth < 0.0) | (ranges > self.cfg.max_range)] = np.inf
        ranges[ranges < self.cfg.min_range] = -np.inf
        return ranges

    def _decode(self, sample: np.ndarray, dt: float) -> RangerData:
        return RangerData(sample, float(self._errors.variance(dt)[0]))


@dataclass(frozen=True)
class _Beams:
    """Rays from one point in given directions."""

    vectors: Sequence[Vector]
    one_origin = True

    def generate_rays(self, model: mujoco.MjModel) -> Rays:
        del model
        directions = np.array(self.vectors, float)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return Rays(np.zeros_like(directions), directions)
