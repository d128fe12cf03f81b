"""Inertial measurement unit: gyroscope, accelerometer and, for an AHRS, attitude."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import BMI088_ACCELEROMETER, BMI088_GYRO, NoiseCfg
from crazyflow_ros.scene.frames import multiply, quat_from_matrix, quat_from_rotvec
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.builtin import add_sensor, columns_of
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.sampled import SampledSensor, SampledSensorCfg
from crazyflow_ros.sensors.visualizer import Visualizer, draw_vector

_G = 9.80665  # m/s^2
_KINDS = {
    "gyro": mujoco.mjtSensor.mjSENS_GYRO,
    "accelerometer": mujoco.mjtSensor.mjSENS_ACCELEROMETER,
}


@dataclass(kw_only=True)
class ImuSensorCfg(SampledSensorCfg):
    """An IMU on a drone, by default that of a Crazyflie; with `attitude`, an AHRS.

    Raises:
        ValueError: The frame is neither a body nor a site, or a site combined with `pos` or `quat`.
    """

    frame: ObjRef
    """Site that the IMU is at, or body that it is on."""
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position in the body [m]: the lever arm from the body's origin."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Attitude in the body, wxyz."""
    gyro: NoiseCfg = BMI088_GYRO
    """Errors of the angular velocity [rad/s]."""
    accelerometer: NoiseCfg = BMI088_ACCELEROMETER
    """Errors of the specific force [m/s^2]."""
    attitude: NoiseCfg | None = None
    """Errors of the attitude, as a rotation vector in the axes of the world [rad], so that the last
    one is that of the heading; None for an IMU that does not know its attitude."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.frame.check(f"{self.name}: frame", ("site", "body", "xbody"))
        if self.frame.type == "site" and (any(self.pos) or self.quat != (1.0, 0.0, 0.0, 0.0)):
            text = "pos and quat need a body; an IMU at a site has the pose of the site"
            raise ValueError(f"{self.name}: {text}")
        self.gyro.check(f"{self.name}: gyro", 3)
        self.accelerometer.check(f"{self.name}: accelerometer", 3)
        if self.attitude is not None:
            self.attitude.check(f"{self.name}: attitude", 3)

    def build(self) -> ImuSensor:
        """Build the sensor."""
        return ImuSensor(self)


@dataclass(frozen=True)
class ImuData:
    """Readings in B worlds, in the axes of the IMU."""

    angular_velocity: np.ndarray
    """Angular velocity [rad/s], shape (B, 3)."""
    linear_acceleration: np.ndarray
    """Specific force [m/s^2], shape (B, 3): +g upwards at rest."""
    angular_velocity_variance: np.ndarray
    """Variance of the white noise [rad²/s²], shape (3,)."""
    linear_acceleration_variance: np.ndarray
    """Variance of the white noise [m²/s^4], shape (3,)."""
    quat: np.ndarray | None = None
    """Attitude in the world, xyzw, shape (B, 4); None if the IMU does not know it."""


class ImuSensor(SampledSensor[ImuSensorCfg, ImuData]):
    """Samples gyroscope, accelerometer and attitude at once."""

    def __init__(self, cfg: ImuSensorCfg) -> None:
        super().__init__(cfg)
        on_body = cfg.frame.type != "site"
        self._site = ObjRef("site", f"{cfg.name}/frame") if on_body else cfg.frame

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """The site that it is at."""
        return (self._site,)

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add MuJoCo's sensors, and a site if it is on a body."""
        cfg = self.cfg
        if self._site is not cfg.frame:
            body = spec.body(cfg.frame.prefixed_name())
            if body is None:
                raise ValueError(f"{cfg.name}: there is no body {cfg.frame.prefixed_name()!r}")
            body.add_site(name=self._site.name, pos=cfg.pos, quat=cfg.quat)
        for kind, sensor_type in _KINDS.items():
            add_sensor(spec, f"{cfg.name}/{kind}", sensor_type, self._site)

    def initialize(self, backend: Backend) -> None:
        """Find MuJoCo's sensors."""
        super().initialize(backend)
        self._rates, self._forces = (columns_of(backend, f"{self.cfg.name}/{k}") for k in _KINDS)
        self._sensordata = backend.sensordata
        self._gyro_noise = self._noise(self.cfg.gyro, 3)
        self._accelerometer_noise = self._noise(self.cfg.accelerometer, 3)
        self._knows_attitude = self.cfg.attitude is not None
        if self.cfg.attitude is not None:
            self._attitude_noise = self._noise(self.cfg.attitude, 3)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the specific force; one g is as long as a unit vector."""
        if self.cfg.debug_vis:
            position, axes = (np.asarray(part) for part in self.backend.frame(self._site))
            for world in visualizer.worlds:
                force = axes[world] @ self.data.linear_acceleration[world] / _G
                draw_vector(visualizer, position[world], force, (1.0, 0.5, 0.0, 1.0))

    def _measure(self, dt: float) -> np.ndarray:
        read = np.asarray(self._sensordata())
        sample = np.empty((len(read), 10 if self._knows_attitude else 6))
        sample[:, :3] = self._gyro_noise.apply(read[:, self._rates], dt)
        sample[:, 3:6] = self._accelerometer_noise.apply(read[:, self._forces], dt)
        if self._knows_attitude:
            truth = quat_from_matrix(np.asarray(self.backend.frame(self._site)[1]))
            error = self._attitude_noise.apply(np.zeros((len(read), 3)), dt)
            sample[:, 6:] = multiply(quat_from_rotvec(error), truth)
        return sample

    def _decode(self, sample: np.ndarray, dt: float) -> ImuData:
        return ImuData(
            sample[:, :3],
            sample[:, 3:6],
            self._gyro_noise.variance(dt),
            self._accelerometer_noise.variance(dt),
            sample[:, 6:] if self._knows_attitude else None,
        )
