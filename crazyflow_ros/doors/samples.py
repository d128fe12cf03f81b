"""Sensor readings with errors at exact ticks, for programs behind a door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene import build_spec
from crazyflow_ros.sensors import MujocoBackend, SensorCfg
from crazyflow_ros.sensors.sampled import SampledSensor
from crazyflow_ros.sensors.state_backend import StateBackend

DRONE = "drone"
"""Name of the drone in the frames of configurations, such as ObjRef("site", "imu", DRONE)."""


class _Sampled(NamedTuple):
    """A sensor on all drones."""

    sensor: SampledSensor[Any, Any]
    period: int
    """Ticks between two samples."""


class Samples:
    """Sensors on all drones, each sampled at its own rate.

    The same drones, seed and flight give the same readings to the bit. After a reset of a drone its
    sensors have new errors.

    Args:
        drone_model: Model of the drones.
        drones: Their names.
        sensors: Configurations of the sensors, each with its rate [Hz]; sensors with rays are
            excluded.
        freq: Physics ticks per second.
        period: Ticks between two control ticks of the door.

    Raises:
        ValueError: A rate does not divide that of the door, two sensors share a name, or a sensor
            cannot be sampled from the state of a drone.
    """

    def __init__(
        self,
        drone_model: str,
        drones: Sequence[str],
        sensors: Sequence[tuple[SensorCfg, int]],
        freq: int,
        period: int,
    ) -> None:
        self._rows, self._freq = range(len(drones)), freq
        self._resets = np.zeros(len(drones), int)
        spec = build_spec(drone_model, [DRONE])
        sampled: dict[str, _Sampled] = {}
        for cfg, rate in sensors:
            if cfg.name in sampled:
                raise ValueError(f"two sensors are called {cfg.name!r}")
            sensor = cfg.build()
            if not isinstance(sensor, SampledSensor):
                raise ValueError(f"{cfg.name}: the state of a drone does not give its readings")
            sensor.edit_spec(spec)
            sampled[cfg.name] = _Sampled(sensor, ticks_per_period(freq, rate, cfg.name))
            if sampled[cfg.name].period % period:
                need = f"must divide the rate of the door, {freq / period:g} Hz"
                raise ValueError(f"{cfg.name}: its rate {need}, got {rate} Hz")
        model = spec.compile()
        alone = MujocoBackend(model, mujoco.MjData(model))
        self._backend = StateBackend(model, drones, alone, DRONE)
        for sensor, _ in sampled.values():
            sensor.initialize(self._backend)
        self._sampled: Mapping[str, _Sampled] = sampled
        self._latest: dict[str, int] = {}  # tick of the last sample

    def take(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the data of the sensors that are due, by name, one row for each drone.

        Args:
            snapshot: The state; a sensor is due at multiples of its period, once for each tick.
        """
        tick, latest = snapshot.tick, self._latest
        due = [
            (name, sensor, period)
            for name, (sensor, period) in self._sampled.items()
            if tick % period == 0 and latest.get(name) != tick
        ]
        if due:
            self._backend.show([snapshot], self._rows)
        for name, sensor, period in due:
            latest[name] = tick
            sensor.update(period / self._freq)
        return {name: sensor.data for name, sensor, _ in due}

    def forget(self, drones: np.ndarray) -> None:
        """Give drones that were reset, by index, sensors with other errors."""
        self._resets[drones] += 1
        self._latest.clear()
        for sensor, _ in self._sampled.values():
            for row in np.arange(len(self._resets))[drones].tolist():
                sensor.begin(row, int(self._resets[row]))
