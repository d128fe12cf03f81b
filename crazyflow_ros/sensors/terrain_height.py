"""Height above the ground, or above objects on it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sensors.backend import Array, Backend
from crazyflow_ros.sensors.raycast import RayCastData, RayCastSensor, RayCastSensorCfg

Reduction = Literal["min", "max", "mean", "none"]


@dataclass
class TerrainHeightSensorCfg(RayCastSensorCfg):
    """Height of frames above the terrain, from rays that look down.

    Raises:
        ValueError: The reduction is unknown, or a field of `RayCastSensorCfg` is invalid.
    """

    reduction: Reduction = "min"
    """How the heights of a frame's rays become one; "none", not in sensors files, keeps all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reduction not in (known := get_args(Reduction)):
            raise ValueError(f"{self.name}: {unknown('reduction', self.reduction, known)}")

    def build(self) -> TerrainHeightSensor:
        """Build the sensor."""
        return TerrainHeightSensor(self)


@dataclass(frozen=True)
class TerrainHeightData(RayCastData):
    """Hits of the rays, and the heights above them."""

    heights: Array
    """Height of the frames [m], shape (B, F), or (B, F, R) without reduction.

    It is the difference in z of the frame and the hit points. A surface hit from behind counts as
    zero height, as the frame is within the ground; a miss counts as `max_distance`. Where all rays
    of a frame miss, it is the frame's own z between zero and `max_distance`.
    """


class TerrainHeightSensor(RayCastSensor):
    """Measures heights whenever it senses."""

    cfg: TerrainHeightSensorCfg

    def initialize(self, backend: Backend) -> None:
        """Prepare the rays.

        Raises:
            ValueError: The back end does not know whether a surface is hit from behind.
        """
        super().initialize(backend)
        if self._rays.no_normals:
            raise ValueError(f"{self.cfg.name}: {self._rays.no_normals}")

    def _sense(self) -> TerrainHeightData:
        rays, xp = super()._sense(), self.backend.xp
        assert rays.normals_w is not None
        shape = (*rays.frame_pos_w.shape[:2], -1)
        frame_z = rays.frame_pos_w[..., 2:]
        missed = rays.distances.reshape(shape) < 0.0
        heights = frame_z - rays.hit_pos_w[..., 2].reshape(shape)
        heights = xp.where(rays.normals_w[..., 2].reshape(shape) < 0.0, 0.0, heights)
        farthest = self.cfg.max_distance
        heights = xp.where(missed, farthest, heights)
        nothing = missed.all(axis=-1, keepdims=True)
        heights = xp.where(nothing, xp.clip(frame_z, 0.0, farthest), heights)
        if self.cfg.reduction != "none":
            heights = getattr(xp, self.cfg.reduction)(heights, axis=-1)
        known = {field.name: getattr(rays, field.name) for field in fields(rays)}
        return TerrainHeightData(**known, heights=heights)

    @property
    def data(self) -> TerrainHeightData:
        """Compute the hits of the rays, and the heights above them."""
        data = super().data
        assert isinstance(data, TerrainHeightData)
        return data
