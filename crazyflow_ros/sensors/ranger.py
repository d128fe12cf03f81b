"""Time-of-flight distance sensors: the Crazyflie's Z-ranger, Flow and Multi-ranger decks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import VL53L1X, NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.patterns import Rays, Vector
from crazyflow_ros.sensors.raycast import RayCastSensorCfg
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg
from crazyflow_ros.sensors.visualizer import Visualizer

DOWN: tuple[Vector, ...] = ((0.0, 0.0, -1.0),)
"""Direction of the Z-ranger and Flow decks."""
MULTI_RANGER: tuple[Vector, ...] = (
    (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0),
)  # fmt: skip
"""Directions of the Multi-ranger deck: front, back, left, right, up."""


@dataclass(kw_only=True)
class RangerSensorCfg(FrameSensorCfg):
    """Distance sensors on a drone, by default a Multi-ranger deck of VL53L1x.

    Raises:
        ValueError: The ranges are not an interval.
    """

    directions: tuple[Vector, ...] = MULTI_RANGER
    """Directions of the n beams in the axes of the frame."""
    min_range: float = 0.04
    """Shortest range [m]; that of the VL53L1X is from the manual named at `VL53L1X`."""
    max_range: float = 4.0
    """Longest range [m]; that of the VL53L1X is from its datasheet, in the dark."""
    noise: NoiseCfg = VL53L1X
    """Errors of a distance [m]."""
    include_geom_groups: tuple[int, ...] | None = (0, 1, 3)
    """Geom groups that beams hit: the world, and the collision shapes of drones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.directions:
            raise ValueError(f"{self.name}: directions is empty")
        if not 0.0 <= self.min_range < self.max_range:
            rule = f"from 0 to less than max_range, {self.max_range:g} m"
            raise ValueError(f"{self.name}: min_range must be {rule}, got {self.min_range:g}")
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


class RangerSensor(FrameSensor[RangerSensorCfg, RangerData]):
    """Samples all beams at once. They start from the frame.

    The reading of a beam is that of the ray in its centre.
    """

    def __init__(self, cfg: RangerSensorCfg) -> None:
        super().__init__(cfg)
        self._rays = RayCastSensorCfg(
            name=cfg.name,
            frame=cfg.frame,
            pattern=_Beams(cfg.directions),
            max_distance=cfg.max_range,
            include_geom_groups=cfg.include_geom_groups,
            debug_vis=cfg.debug_vis,
            viz=RayCastSensorCfg.VizCfg(show_rays=True),
        ).build()

    def initialize(self, backend: Backend) -> None:
        """Prepare the beams."""
        super().initialize(backend)
        self._rays.initialize(backend)
        self._errors = self._noise(self.cfg.noise, len(self.cfg.directions))

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the beams of the last `update`."""
        self._rays.debug_vis(visualizer)

    def _measure(self, dt: float) -> np.ndarray:
        self._rays.sense()
        truth = np.asarray(self._rays.data.distances)
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
