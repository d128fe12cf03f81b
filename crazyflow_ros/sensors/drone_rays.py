"""Sensors on a drone that cast rays, for the file of the parameter `sensors`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from crazyflow_ros.sensors import (
    GridPatternCfg,
    LidarPatternCfg,
    NoiseCfg,
    PinholeCameraPatternCfg,
    RayCastSensorCfg,
    RingPatternCfg,
)
from crazyflow_ros.sensors.noise import EXACT

Pattern: TypeAlias = GridPatternCfg | RingPatternCfg | PinholeCameraPatternCfg | LidarPatternCfg

COLLISIONS = (0, 1, 3)
"""Geom groups that rays hit: the world, and the collision shapes of drones."""
DRAWN: dict[str, Any] = {"debug_vis": True, "viz": RayCastSensorCfg.VizCfg(show_rays=True)}
"""Fields of sensors whose rays are drawn for RViz."""


@dataclass(kw_only=True)
class RaysCfg(RayCastSensorCfg):
    """Rays from a drone, with the noise and the shortest range of a real sensor.

    Raises:
        ValueError: The distances are not an interval, or the noise is not white.
    """

    pattern: Pattern
    include_geom_groups: tuple[int, ...] | None = COLLISIONS
    min_distance: float = 0.0
    """Shortest distance that is measured [m]."""
    noise: NoiseCfg = EXACT
    """White noise of the distances [m]: its `std`."""
    seed: int = 0
    """Seed of the noise, together with the names of sensor and drone, and the time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.min_distance < self.max_distance:
            rule = f"from 0 to less than max_distance, {self.max_distance:g} m"
            raise ValueError(f"{self.name}: min_distance must be {rule}, got {self.min_distance:g}")
        self.noise.check(f"{self.name}: noise", 1)
        if self.noise != NoiseCfg(std=self.noise.std):
            raise ValueError(f"{self.name}: noise of rays may have a std only, got {self.noise}")
        if self.seed < 0:
            raise ValueError(f"{self.name}: seed must not be negative, got {self.seed}")

    def ranges(self, distances: np.ndarray, drone: str, tick: int) -> np.ndarray:
        """Convert distances (n,) [m], negative where nothing is hit, to readings at a tick.

        Returns:
            Readings as in REP 117: infinite where nothing is hit, negative infinite where something
            is too near.
        """
        missed = distances < 0.0
        if self.noise.std:
            seed = (self.seed, tick, *f"{self.name}:{drone}".encode())
            distances = distances + np.multiply(
                self.noise.std, np.random.default_rng(seed).standard_normal(len(distances))
            )
        ranges = np.where(distances < self.min_distance, -np.inf, distances)
        ranges[missed | (ranges > self.max_distance)] = np.inf
        return ranges
