"""Optical flow: how fast the ground moves through the view of a camera that looks down."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.drones.deck_optics import LEAST_TEXTURE
from crazyflow_ros.drones.instruments import NoiseCfg, flow_rates
from crazyflow_ros.scene.surfaces import surfaces
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.builtin import add_sensor, columns_of
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.patterns import ConePatternCfg
from crazyflow_ros.sensors.ranger import DOWN, BeamSensor, BeamSensorCfg

_KINDS = {
    "velocimeter": mujoco.mjtSensor.mjSENS_VELOCIMETER,
    "gyro": mujoco.mjtSensor.mjSENS_GYRO,
}


@dataclass(kw_only=True)
class OpticalFlowSensorCfg(BeamSensorCfg):
    """A flow sensor like the Flow deck's, which looks along -z of a site; exact by default.

    It sees the ground sharply from `min_range` to `max_range`.

    Raises:
        ValueError: The frame is not a site, or the ranges are not an interval.
    """

    noise: NoiseCfg = EXACT
    """Errors of the flow [rad/s]."""
    by_texture: bool = True
    """Whether there is no flow over surfaces with too little texture, see `surfaces`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.frame.check(f"{self.name}: frame", ("site",))
        self.noise.check(f"{self.name}: noise", 1)

    def build(self) -> OpticalFlowSensor:
        """Build the sensor."""
        return OpticalFlowSensor(self)


@dataclass(frozen=True)
class OpticalFlowData:
    """Readings in B worlds."""

    flow: np.ndarray
    """Angular rates [rad/s], shape (B, 2), in the direction of the site's x and y axes, see
    `instruments.flow_rates`: as in the Crazyflie's estimator. NaN without ground, or if that has
    too little texture."""
    variance: float
    """Variance of the white noise [rad²/s²]."""


class OpticalFlowSensor(BeamSensor[OpticalFlowSensorCfg, OpticalFlowData]):
    """Samples the flow in the centre of the view, over static ground."""

    def __init__(self, cfg: OpticalFlowSensorCfg) -> None:
        super().__init__(cfg, ConePatternCfg(DOWN, 0.0))

    def _limits(self, model: mujoco.MjModel) -> tuple[float | np.ndarray, np.ndarray | None]:
        if not self.cfg.by_texture:
            return super()._limits(model)
        has_features = surfaces(model)[:, 1] >= LEAST_TEXTURE
        return np.where(has_features, self.cfg.max_range, 0.0), None

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add a velocimeter and a gyroscope."""
        for kind, sensor_type in _KINDS.items():
            add_sensor(spec, f"{self.cfg.name}/{kind}", sensor_type, self.cfg.frame)

    def initialize(self, backend: Backend) -> None:
        """Find these sensors, and prepare the ray and the noise."""
        super().initialize(backend)
        self._vel, self._turn = (columns_of(backend, f"{self.cfg.name}/{k}") for k in _KINDS)
        self._errors = self._noise(self.cfg.noise, 2)

    def _measure(self, dt: float) -> np.ndarray:
        (distance,) = self._distances().T
        read = np.asarray(self.backend.sensordata())
        velocity, turn = read[:, self._vel], read[:, self._turn].astype(float)
        sharp = (distance > 0.0) & (distance >= self.cfg.min_range)
        distance = np.where(sharp, distance, np.nan)
        flow = np.stack(flow_rates(velocity.T, turn.T, distance), axis=-1)
        return self._errors.apply(flow, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> OpticalFlowData:
        return OpticalFlowData(sample, float(self._errors.variance(dt)[0]))
