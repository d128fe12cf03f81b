"""Time-of-flight distance sensors: the Crazyflie's Z-ranger, Flow and Multi-ranger decks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import NoiseCfg
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.patterns import Rays, Vector
from crazyflow_ros.sensors.raycast import RayCastSensorCfg
from crazyflow_ros.sensors.sampled import SampledSensor, SampledSensorCfg

DOWN: tuple[Vector, ...] = ((0.0, 0.0, -1.0),)
"""Direction of the Z-ranger and Flow decks."""
MULTI_RANGER: tuple[Vector, ...] = (
    (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0),
)  # fmt: skip
"""Directions of the Multi-ranger deck: front, back, left, right, up."""
VL53L1X = NoiseCfg(std=0.0025)
"""Noise of the decks' sensor [m], as the Crazyflie's firmware assumes it at 2.5 m."""


@dataclass(kw_only=True)
class RangerSensorCfg(SampledSensorCfg):
    """Distance sensors on a drone, by default a Multi-ranger deck of VL53L1x.

    Raises:
        ValueError: The ranges are no interval.
    """

    frame: ObjRef
    """Body or site that all beams start from."""
    directions: tuple[Vector, ...] = MULTI_RANGER
    """Directions of the n beams in the axes of the frame."""
    min_range: float = 0.04
    """What is nearer is too near [m]."""
    max_range: float = 4.0
    """What is farther isn't seen [m]."""
    noise: NoiseCfg = VL53L1X
    """Errors of a distance [m]."""
    include_geom_groups: tuple[int, ...] | None = (0, 1, 3)
    """Geom groups that beams meet: drones are what they collide as."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.min_range < self.max_range or not self.directions:
            ranges = f"{self.min_range} to {self.max_range} m"
            raise ValueError(f"{self.name}: {len(self.directions)} beams of {ranges}")

    def build(self) -> RangerSensor:
        """Build the sensor."""
        return RangerSensor(self)


@dataclass(frozen=True)
class RangerData:
    """Readings in B worlds."""

    ranges: np.ndarray
    """Distance along each beam [m], shape (B, n); infinite if nothing is within reach, negative
    infinite if something is too near, as REP 117 has it."""
    variance: float
    """Variance of the white noise [m²]."""


class RangerSensor(SampledSensor[RangerSensorCfg, RangerData]):
    """Samples all beams at once. The readings are those of the ray in the middle of a beam."""

    def __init__(self, cfg: RangerSensorCfg) -> None:
        super().__init__(cfg)
        self._rays = RayCastSensorCfg(
            name=cfg.name,
            frame=cfg.frame,
            pattern=_Beams(cfg.directions),
            max_distance=cfg.max_range,
            include_geom_groups=cfg.include_geom_groups,
        ).build()

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Beams need nothing in the model."""

    def initialize(self, backend: Backend) -> None:
        """Prepare the beams."""
        super().initialize(backend)
        self._rays.initialize(backend)
        self._errors = self._noise(self.cfg.noise, len(self.cfg.directions))

    def _measure(self, dt: float) -> np.ndarray:
        self._rays.sense()
        truth = np.asarray(self._rays.data.distances)
        ranges = self._errors.apply(truth, dt)
        ranges[(truth < 0.0) | (ranges > self.cfg.max_range)] = np.inf
        ranges[ranges < self.cfg.min_range] = -np.inf
        return ranges

    def _decode(self, sample: np.ndarray, dt: float) -> RangerData:
        return RangerData(sample, float(self.cfg.noise.variance(dt, 1)[0]))


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
