"""Optical flow: how fast the ground moves through the view of a camera that looks down."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.builtin import add_sensor, columns_of
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.patterns import GridPatternCfg
from crazyflow_ros.sensors.raycast import RayCastSensorCfg
from crazyflow_ros.sensors.sampled import SampledSensor, SampledSensorCfg
from crazyflow_ros.sensors.visualizer import Visualizer

_KINDS = {
    "velocimeter": mujoco.mjtSensor.mjSENS_VELOCIMETER,
    "gyro": mujoco.mjtSensor.mjSENS_GYRO,
}


@dataclass(kw_only=True)
class OpticalFlowSensorCfg(SampledSensorCfg):
    """A flow sensor like the Flow deck's, which looks along -z of a site; exact by default.

    Raises:
        ValueError: The frame is not a site, or the ranges are not an interval.
    """

    frame: ObjRef
    """Site that it is at."""
    noise: NoiseCfg = EXACT
    """Errors of the flow [rad/s]."""
    min_range: float = 0.0
    """Shortest distance at which the ground is sharp enough [m]."""
    max_range: float = 10.0
    """Longest distance at which it sees the ground [m]."""
    include_geom_groups: tuple[int, ...] | None = (0, 1, 3)
    """Geom groups that count as ground."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.frame.check(f"{self.name}: frame", ("site",))
        if not 0.0 <= self.min_range < self.max_range:
            rule = f"from 0 to less than max_range, {self.max_range:g} m"
            raise ValueError(f"{self.name}: min_range must be {rule}, got {self.min_range:g}")
        self.noise.check(f"{self.name}: noise", 1)

    def build(self) -> OpticalFlowSensor:
        """Build the sensor."""
        return OpticalFlowSensor(self)


@dataclass(frozen=True)
class OpticalFlowData:
    """Readings in B worlds."""

    flow: np.ndarray
    """Angular rates [rad/s], shape (B, 2), in the direction of the site's x and y axes, positive if
    the sensor moves along these axes over the ground: vx / d - ωy and vy / d + ωx at a distance d,
    as in the Crazyflie's estimator. NaN without ground."""
    variance: float
    """Variance of the white noise [rad²/s²]."""


class OpticalFlowSensor(SampledSensor[OpticalFlowSensorCfg, OpticalFlowData]):
    """Samples the flow in the centre of the view, over static ground."""

    def __init__(self, cfg: OpticalFlowSensorCfg) -> None:
        super().__init__(cfg)
        self._ray = RayCastSensorCfg(
            name=cfg.name,
            frame=cfg.frame,
            pattern=GridPatternCfg(size=(0.0, 0.0)),
            max_distance=cfg.max_range,
            include_geom_groups=cfg.include_geom_groups,
            debug_vis=cfg.debug_vis,
            viz=RayCastSensorCfg.VizCfg(show_rays=True),
        ).build()

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The site that it is at."""
        return (self.cfg.frame,)

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add a velocimeter and a gyroscope."""
        for kind, sensor_type in _KINDS.items():
            add_sensor(spec, f"{self.cfg.name}/{kind}", sensor_type, self.cfg.frame)

    def initialize(self, backend: Backend) -> None:
        """Find the sensors and prepare the ray."""
        super().initialize(backend)
        self._vel, self._turn = (columns_of(backend, f"{self.cfg.name}/{k}") for k in _KINDS)
        self._ray.initialize(backend)
        self._errors = self._noise(self.cfg.noise, 2)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the ray to the ground of the last `update`."""
        self._ray.debug_vis(visualizer)

    def _measure(self, dt: float) -> np.ndarray:
        self._ray.sense()
        read = np.asarray(self.backend.sensordata())
        velocity, turn = read[:, self._vel], read[:, self._turn]
        distance = np.asarray(self._ray.data.distances)
        sharp = (distance > 0.0) & (distance >= self.cfg.min_range)
        distance = np.where(sharp, distance, np.nan)
        flow = velocity[:, :2] / distance + turn[:, 1::-1] * [-1.0, 1.0]
        return self._errors.apply(flow, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> OpticalFlowData:
        return OpticalFlowData(sample, float(self._errors.variance(dt)[0]))
