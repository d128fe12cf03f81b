"""The sensors of the sensors file behind ros2_control: sampled at control ticks, with errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mujoco
import numpy as np

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.description.interfaces import AXES, BODY, GOAL, Component, rotors
from crazyflow_ros.drones.rotors import MOST
from crazyflow_ros.lockstep.layout import CARRIED, Entry
from crazyflow_ros.ros.sensors.devices import DRONE, Device, SensorFile
from crazyflow_ros.ros.sensors.sensor_states import ESTIMATE, Sensed, States
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import MujocoBackend
from crazyflow_ros.sensors.sampled import SampledSensor
from crazyflow_ros.sensors.state_backend import StateBackend

_ESTIMATE = "estimate"
_TAKEN = {part.suffix for part in (*rotors(MOST), *AXES, BODY, GOAL)} | {_ESTIMATE}


class _Carried:
    """A sensor, for all drones that carry it."""

    def __init__(
        self, name: str, states: States, rows: list[int], device: Device[Any] | None
    ) -> None:
        self.name, self.states, self.rows, self.device = name, states, np.array(rows), device
        self.sensor: SampledSensor[Any, Any] | None = None
        self.rate = device.rate if device else 1
        self.period = self.due = 1  # ticks between samples, and between those that are read
        self.values = np.full((len(rows), sum(each.size for each in states.values())), np.nan)

    def interfaces(self) -> Iterator[str]:
        """Yield the names of its state interfaces."""
        for name, (size, _) in self.states.items():
            yield from [name] if size == 1 else [f"{name}.{axis}" for axis in "xyzw"[:size]]

    def keep_time(self, freq: int, rate: int) -> None:
        """Take the ticks of samples from its rate, and that of control ticks [Hz]."""
        assert self.device is not None
        own, control = self.rate, freq // rate
        where, self.period = f"{self.device.owner}/{self.name}", freq // own
        if self.period % control and control % self.period:
            text = f"{where}: behind ros2_control, a rate divides that of ros2_control, {rate}, or"
            raise ParameterError("sensors", f"{text} is a multiple of it, got {own}")
        if self.period < control and getattr(self.device.cfg, "delay", False):
            text = f"{where}: behind ros2_control, a delay needs a rate of at most {rate}"
            raise ParameterError("sensors", f"{text}, that of ros2_control, got {own}")
        self.due = max(self.period, control)


class CarriedSensors:
    """Readings of the drones that a door flies, see `lockstep.states.CarriedReadings`.

    Samples have the errors of those on topics at the same tick: these depend on the seed, the
    names, the resets of the drone and the number of the sample.

    Args:
        file: The sensors; None without a file.
        drones: The drones of the door.
        freq: Physics ticks per second.
        rate: Control ticks per second.
        estimates: Whether the drones estimate their state.

    Attributes:
        entries: What is read.
        left_out: Sensors of the file that controllers cannot read.

    Raises:
        ParameterError: A sensor has the name of another part of the drone, or a rate that does not
            fit that of the control ticks.
    """

    def __init__(
        self,
        file: SensorFile | None,
        drones: Sequence[str],
        freq: int,
        rate: int,
        *,
        estimates: bool = False,
    ) -> None:
        self._file, self._drones, self._sensors = file, tuple(drones), list[_Carried]()
        self.left_out: list[str] = []
        for device in file.devices if file else ():
            rows = [i for i, drone in enumerate(drones) if file and file.carries(drone, device)]
            if not device.kind.states or getattr(device.cfg, "secondary", None) is not None:
                self.left_out.append(device.name)
            elif rows:
                if device.name in _TAKEN:
                    text = f"behind ros2_control the name {device.name!r} is another part's"
                    raise ParameterError("sensors", f"{device.owner}/{device.name}: {text}")
                carried = _Carried(device.name, device.kind.states, rows, device)
                carried.keep_time(freq, rate)
                self._sensors.append(carried)
        if estimates:
            self._sensors.append(_Carried(_ESTIMATE, ESTIMATE, [*range(len(drones))], None))
        self.entries: Sequence[Entry] = [
            Entry(f"{drones[row]}_{each.name}/{state}", CARRIED, size)
            for each in self._sensors
            for row in each.rows
            for state, (size, _) in each.states.items()
        ]
        n = len(self._drones)
        self._resets, self._starts, self._reborn = (
            np.zeros(n, int),
            np.zeros(n, int),
            np.ones(n, bool),
        )

    def components(self, drone: str) -> list[Component]:
        """Return the `<sensor>` elements of a drone."""
        row = self._drones.index(drone)
        own = [each for each in self._sensors if row in each.rows]
        return [Component("sensor", each.name, tuple(each.interfaces())) for each in own]

    def forget(self, drones: np.ndarray) -> None:
        """Start the samples of drones anew, by index, because they were reset."""
        self._reborn[drones] = True
        self._resets[drones] += 1

    def read(self, now: Snapshot, model: mujoco.MjModel) -> np.ndarray:
        """See `CarriedReadings`."""
        self._starts[self._reborn] = now.tick
        for each in self._sensors:
            new = np.flatnonzero(self._reborn[each.rows])
            if new.size:
                if each.sensor is None:
                    each.sensor = self._new(each, model)
                else:
                    for i in new.tolist():
                        each.sensor.begin(i, int(self._resets[each.rows[i]]))
                # Something to read until their first sample is due.
                each.values[new] = self._sampled(each, self._new(each, model), now)[new]
            if now.tick % each.due == 0 and self._skip(each, now):
                each.values = self._sampled(each, each.sensor, now)
        self._reborn[:] = False
        return np.concatenate([each.values.ravel() for each in self._sensors])

    def _new(self, each: _Carried, model: mujoco.MjModel) -> SampledSensor[Any, Any] | None:
        """Build the sensor, unless its readings are not sampled."""
        sensor = each.device and each.device.cfg.build()
        if not isinstance(sensor, SampledSensor):
            return None
        assert self._file is not None
        drones = [self._drones[row] for row in each.rows]
        scene = MujocoBackend(model, mujoco.MjData(model))  # only its gravity is used
        sensor.initialize(StateBackend(self._file.model, drones, scene, DRONE))
        for i, row in enumerate(each.rows):
            sensor.begin(i, int(self._resets[row]))
        return sensor

    def _skip(self, each: _Carried, now: Snapshot) -> bool:
        """Skip the samples that are not read; return False if the present one has been taken."""
        sensor = each.sensor
        if sensor is None:
            return True
        number = (now.tick - self._starts[each.rows]) // each.period
        if (left_out := number - sensor.n_samples).any():
            if (left_out < 0).any():  # time stands still
                return False
            sensor.skip(left_out, 1 / each.rate)
        return True

    @staticmethod
    def _sampled(
        each: _Carried, sensor: SampledSensor[Any, Any] | None, now: Snapshot
    ) -> np.ndarray:
        """Return a sample."""
        data = None
        if sensor is not None:
            assert isinstance(sensor.backend, StateBackend)
            sensor.backend.show([now], each.rows.tolist())
            sensor.update(1 / each.rate)
            data = sensor.data
        drones = now.of(each.rows)
        place = each.device.place if each.device else None
        seen = Sensed(data, drones, place)
        columns = [read(seen) for _, read in each.states.values()]
        return np.column_stack(columns)
