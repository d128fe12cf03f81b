"""State of the battery, as the battery stage of a `Sim` has it."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT, NoiseCfg
from crazyflow_ros.sensors.sampled import SampledSensor, SampledSensorCfg
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.actuation import Battery


@dataclass(kw_only=True)
class BatterySensorCfg(SampledSensorCfg):
    """Voltage and current of the battery of one drone; exact unless told otherwise.

    Raises:
        ValueError: The drone's index is negative.
    """

    battery: Battery
    """The stage of the pipeline that discharges it."""
    drone: int = 0
    """Index of the drone."""
    voltage: NoiseCfg = EXACT
    """Errors of the voltage [V]."""
    current: NoiseCfg = EXACT
    """Errors of the current [A]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drone < 0:
            raise ValueError(f"{self.name}: drone {self.drone}, expected an index")

    def build(self) -> BatterySensor:
        """Build the sensor."""
        return BatterySensor(self)


@dataclass(frozen=True)
class BatteryData:
    """Readings in B worlds."""

    voltage: np.ndarray
    """At the terminals, under load [V], shape (B,)."""
    current: np.ndarray
    """Drawn from the battery [A], shape (B,)."""
    charge: np.ndarray
    """What is left [A h], shape (B,); without errors, as nobody can measure it."""
    percentage: np.ndarray
    """Share of the capacity that is left, 0 to 1, shape (B,)."""
    voltage_variance: float
    """Variance of the white noise of the voltage [V²]."""
    current_variance: float
    """Variance of the white noise of the current [A²]."""


class BatterySensor(SampledSensor[BatterySensorCfg, BatteryData]):
    """Samples the battery; over a `SimBackend` only, as MuJoCo knows of no batteries."""

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """A battery needs nothing in the model."""

    def initialize(self, backend: Backend) -> None:
        """Find the drone, and begin to err.

        Raises:
            ValueError: The back end is not over a `Sim`, or it has no such drone or stage.
        """
        name, sim = self.cfg.name, getattr(backend, "sim", None)
        if not isinstance(sim, Sim):
            raise ValueError(f"{name}: this back end has no batteries, use SimBackend")
        if self.cfg.drone >= sim.n_drones:
            raise ValueError(f"{name}: drone {self.cfg.drone}, there are {sim.n_drones}")
        if "battery" not in sim.data.plugins:
            raise ValueError(f"{name}: the pipeline has no stage Battery")
        super().initialize(backend)
        self._sim = sim
        self._voltage = self._noise(self.cfg.voltage, 1)
        self._current = self._noise(self.cfg.current, 1)

    def _measure(self, dt: float) -> np.ndarray:
        data, drone = self._sim.data, self.cfg.drone
        volts, current = (
            np.asarray(values)[:, drone, None] for values in self.cfg.battery.under_load(data)
        )
        drawn = np.asarray(data.plugins["battery"])[:, drone]
        left = np.maximum(self.cfg.battery.capacity - drawn, 0.0)
        return np.hstack([self._voltage.apply(volts, dt), self._current.apply(current, dt), left])

    def _decode(self, sample: np.ndarray, dt: float) -> BatteryData:
        voltage, current, charge = sample.T
        return BatteryData(
            voltage,
            current,
            charge,
            charge / self.cfg.battery.capacity,
            float(self.cfg.voltage.variance(dt, 1)[0]),
            float(self.cfg.current.variance(dt, 1)[0]),
        )
