"""State of the battery that the battery stage of the physics computes."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.noise import EXACT
from crazyflow_ros.sensors.sampled import SampledSensor, SampledSensorCfg
from crazyflow_ros.sensors.state_backend import StateBackend
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.actuation import Battery


@dataclass(kw_only=True)
class BatterySensorCfg(SampledSensorCfg):
    """Voltage and current of the battery of one drone, exact by default.

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
            raise ValueError(f"{self.name}: drone must be an index of 0 or more, got {self.drone}")
        self.voltage.check(f"{self.name}: voltage", 1)
        self.current.check(f"{self.name}: current", 1)

    def build(self) -> BatterySensor:
        """Build the sensor."""
        return BatterySensor(self)


@dataclass(frozen=True)
class BatteryData:
    """Readings in B worlds."""

    voltage: np.ndarray
    """At the terminals, under load [V], shape (B,)."""
    current: np.ndarray
    """Current drawn from the battery [A], shape (B,)."""
    charge: np.ndarray
    """Charge left [A h], shape (B,); without errors, because it cannot be measured."""
    percentage: np.ndarray
    """Share of the capacity that is left, 0 to 1, shape (B,)."""
    voltage_variance: float
    """Variance of the white noise of the voltage [V²]."""
    current_variance: float
    """Variance of the white noise of the current [A²]."""


class BatterySensor(SampledSensor[BatterySensorCfg, BatteryData]):
    """Samples the battery, which is not part of MuJoCo's model.

    With a `SimBackend` it samples one drone in all worlds, with a `StateBackend` each drone, if the
    drones have batteries.
    """

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add nothing: a battery is not part of the model."""

    def initialize(self, backend: Backend) -> None:
        """Find the drone and prepare the noise.

        Raises:
            ValueError: The back end has no batteries, or its `Sim` lacks the drone or the stage.
        """
        super().initialize(backend)
        self._read = backend.batteries if isinstance(backend, StateBackend) else self._of_sim
        if not isinstance(backend, StateBackend):
            self._check(backend)
        self._voltage = self._noise(self.cfg.voltage, 1)
        self._current = self._noise(self.cfg.current, 1)

    def _check(self, backend: Backend) -> None:
        name, sim = self.cfg.name, getattr(backend, "sim", None)
        if not isinstance(sim, Sim):
            raise ValueError(f"{name}: this back end has no batteries, use SimBackend")
        if self.cfg.drone >= sim.n_drones:
            last = sim.n_drones - 1
            raise ValueError(f"{name}: drone must be from 0 to {last}, got {self.cfg.drone}")
        if "battery" not in sim.data.plugins:
            raise ValueError(f"{name}: the pipeline has no stage Battery")
        self._sim = sim

    def _of_sim(self) -> np.ndarray:
        """Return voltage, current and drawn charge in all worlds, shape (B, 3)."""
        data, drone = self._sim.data, self.cfg.drone
        volts, current = self.cfg.battery.under_load(data)
        columns = (volts[..., None], current[..., None], data.plugins["battery"])
        return np.hstack([np.asarray(values)[:, drone] for values in columns])

    def _measure(self, dt: float) -> np.ndarray:
        volts, current, drawn = np.split(self._read(), 3, axis=1)
        left = np.maximum(self.cfg.battery.capacity - drawn, 0.0)
        return np.hstack([self._voltage.apply(volts, dt), self._current.apply(current, dt), left])

    def _decode(self, sample: np.ndarray, dt: float) -> BatteryData:
        voltage, current, charge = sample.T
        return BatteryData(
            voltage,
            current,
            charge,
            charge / self.cfg.battery.capacity,
            float(self._voltage.variance(dt)[0]),
            float(self._current.variance(dt)[0]),
        )
