"""The earth's magnetic field."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT, NoiseCfg
from crazyflow_ros.sensors.objects import ObjRef
from crazyflow_ros.sensors.sampled import SampledSensor, SampledSensorCfg

CENTRAL_EUROPE: tuple[float, float, float] = (1.5e-6, 21e-6, -44e-6)
"""About the field near Munich in axes east, north, up [T]."""


@dataclass(kw_only=True)
class MagnetometerSensorCfg(SampledSensorCfg):
    """A magnetometer; exact unless told otherwise."""

    frame: ObjRef
    """Body, site or geom that it is fixed to."""
    field: tuple[float, float, float] = CENTRAL_EUROPE
    """Field in the world, everywhere the same [T]; the model's own is of no consequence."""
    noise: NoiseCfg = EXACT
    """Errors of a reading [T]; its bias is what is called hard iron."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.frame.check(f"{self.name}: frame", ("body", "xbody", "site", "geom"))

    def build(self) -> MagnetometerSensor:
        """Build the sensor."""
        return MagnetometerSensor(self)


@dataclass(frozen=True)
class MagnetometerData:
    """Readings in B worlds."""

    magnetic_field: np.ndarray
    """In the axes of the frame [T], shape (B, 3)."""
    variance: np.ndarray
    """Variance of the white noise [T²], shape (3,)."""


class MagnetometerSensor(SampledSensor[MagnetometerData]):
    """Samples the field in the axes of what it is fixed to."""

    def __init__(self, cfg: MagnetometerSensorCfg) -> None:
        super().__init__(cfg)
        self.cfg = cfg

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """The field needs nothing in the model."""

    def initialize(self, backend: Backend) -> None:
        """Find where it is."""
        super().initialize(backend)
        self.cfg.frame.id(backend.model)
        self._errors = self._noise(self.cfg.noise, 3)

    def _measure(self, dt: float) -> np.ndarray:
        axes = np.asarray(self.backend.frame(self.cfg.frame)[1])
        return self._errors.apply(np.array(self.cfg.field) @ axes, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> MagnetometerData:
        return MagnetometerData(sample, self.cfg.noise.variance(dt, 3))
