"""Motion capture: poses measured from outside, with delay, noise and gaps."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.scene.frames import (
    multiply,
    quat_from_matrix,
    quat_from_rotvec,
    rotation_matrix,
)
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.sampled import FrameSensor, FrameSensorCfg
from crazyflow_ros.sensors.visualizer import Color, Visualizer, draw_vector

_AXIS_COLORS: tuple[Color, ...] = ((1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1))


@dataclass(kw_only=True)
class MotionCaptureSensorCfg(FrameSensorCfg):
    """A tracked body, exact by default.

    Raises:
        ValueError: `dropout` is not a probability.
    """

    position: NoiseCfg = EXACT
    """Errors of the position, per axis of the world [m]."""
    attitude: NoiseCfg = EXACT
    """Errors of the attitude, as a rotation vector in the axes of the body [rad]."""
    dropout: float = 0.0
    """Probability that a sample is missing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.dropout < 1.0:
            rule = "from 0 to less than 1"
            raise ValueError(f"{self.name}: dropout must be {rule}, got {self.dropout:g}")
        self.position.check(f"{self.name}: position", 3)
        self.attitude.check(f"{self.name}: attitude", 3)

    def build(self) -> MotionCaptureSensor:
        """Build the sensor."""
        return MotionCaptureSensor(self)


@dataclass(frozen=True)
class MotionCaptureData:
    """Poses in B worlds."""

    valid: np.ndarray
    """Whether there is a sample, shape (B,), bool."""
    pos: np.ndarray
    """Position in the world [m], shape (B, 3); NaN if it is missing."""
    quat: np.ndarray
    """Attitude in the world, xyzw, shape (B, 4); NaN if the sample is missing."""
    pos_variance: np.ndarray
    """Variance of the white noise of the position [m²], shape (3,)."""
    attitude_variance: np.ndarray
    """Variance of the white noise of the attitude [rad²], shape (3,)."""


class MotionCaptureSensor(FrameSensor[MotionCaptureSensorCfg, MotionCaptureData]):
    """Samples the pose of a body."""

    def initialize(self, backend: Backend) -> None:
        """Find the frame and prepare the noise."""
        super().initialize(backend)
        self._position = self._noise(self.cfg.position, 3)
        self._attitude = self._noise(self.cfg.attitude, 3)
        self._chance = self._noise(NoiseCfg(std=1.0), 1)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the axes of the pose, x in red, y in green, z in blue."""
        if self.cfg.debug_vis:
            for world in (world for world in visualizer.worlds if self.data.valid[world]):
                axes = rotation_matrix(self.data.quat[world])
                for axis, color in zip(axes.T, _AXIS_COLORS):
                    draw_vector(visualizer, self.data.pos[world], axis, color)

    def _measure(self, dt: float) -> np.ndarray:
        pos, axes = (np.asarray(part) for part in self.backend.frame(self.cfg.frame))
        turn = self._attitude.apply(np.zeros_like(pos), dt)
        quat = multiply(quat_from_matrix(axes), quat_from_rotvec(turn))
        pose = np.hstack([self._position.apply(pos, dt), quat])
        chance = self._chance.apply(np.zeros((len(pose), 1)), dt)[:, 0]
        if self.cfg.dropout:
            pose[chance < NormalDist().inv_cdf(self.cfg.dropout)] = np.nan
        return pose

    def _decode(self, sample: np.ndarray, dt: float) -> MotionCaptureData:
        return MotionCaptureData(
            np.isfinite(sample).all(axis=1),
            sample[:, :3],
            sample[:, 3:],
            self._position.variance(dt),
            self._attitude.variance(dt),
        )
