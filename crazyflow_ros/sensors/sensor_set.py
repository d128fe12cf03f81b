"""All sensors of a model, managed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import mujoco

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sensors.backend import Backend
from crazyflow_ros.sensors.builtin import BuiltinSensor
from crazyflow_ros.sensors.context import SensorContext
from crazyflow_ros.sensors.sensor import Sensor, SensorCfg, WorldIds
from crazyflow_ros.sensors.visualizer import Visualizer


class SensorSet(Mapping[str, Sensor[Any]]):
    """Sensors by name: those of the configurations, and those already in the model.

    ::

        sensors = SensorSet([BuiltinSensorCfg(name="up", sensor_type="framezaxis", obj=body)])
        sensors.edit_spec(spec)
        model = spec.compile()
        data = mujoco.MjData(model)
        sensors.initialize(MujocoBackend(model, data))
        mujoco.mj_forward(model, data)
        sensors.sense()  # cameras and rays
        up = sensors["up"].data

    Args:
        configurations: Configurations of the sensors to add.
    """

    def __init__(self, configurations: Iterable[SensorCfg]) -> None:
        self._sensors: dict[str, Sensor[Any]] = {}
        for cfg in configurations:
            if cfg.name in self._sensors:
                raise ValueError(f"two sensors are called {cfg.name!r}")
            self._sensors[cfg.name] = cfg.build()
        self._context: SensorContext | None = None

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Wrap the sensors of the specification, and add the others to it."""
        existing = [sensor.name for sensor in spec.sensors]
        for sensor in self._sensors.values():
            sensor.edit_spec(spec)
        for name in existing:
            self._sensors.setdefault(name, BuiltinSensor.from_existing(name))

    def initialize(self, backend: Backend) -> None:
        """Initialise all sensors, and the context of cameras and rays."""
        for sensor in self._sensors.values():
            sensor.initialize(backend)
        self._context = SensorContext(backend, self._sensors.values())

    def sense(self) -> None:
        """Render cameras and cast rays. They keep their readings until the next call."""
        if self._context is None:
            raise RuntimeError("initialize the sensors before they sense")
        self._context.sense()

    def update(self, dt: float) -> None:
        """Handle an advance of the simulation by `dt` [s]."""
        for sensor in self._sensors.values():
            sensor.update(dt)

    def reset(self, ids: WorldIds = None) -> None:
        """Handle a reset of worlds."""
        for sensor in self._sensors.values():
            sensor.reset(ids)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw the readings of all sensors that can be drawn."""
        for sensor in self._sensors.values():
            sensor.debug_vis(visualizer)

    def close(self) -> None:
        """Free the renderer."""
        if self._context is not None:
            self._context.close()

    def __getitem__(self, name: str) -> Sensor[Any]:
        if name not in self._sensors:
            raise KeyError(unknown("sensor", name, self._sensors))
        return self._sensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sensors)

    def __len__(self) -> int:
        return len(self._sensors)
