"""Topics of sensors that are sampled: those of all drones that carry one at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.messages.cdr import SerialisedMessages, joined, layout
from crazyflow_ros.ros.messages.outbox import Outbox
from crazyflow_ros.ros.sensors.device_topics import DeviceTopics, Scene
from crazyflow_ros.ros.sensors.markers import MARKERS, marker_array
from crazyflow_ros.ros.sensors.sample_messages import MESSAGES
from crazyflow_ros.ros.sensors.sensor_kinds import DRONE
from crazyflow_ros.ros.sensors.sensors_file import Device, SensorFile
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.sensors import RangerSensorCfg, ShapeRecorder
from crazyflow_ros.sensors.backends.state import StateBackend
from crazyflow_ros.sensors.sampled import SampledSensor

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

SAMPLE_QOS = QoSProfile(depth=100)
"""Of what is sent in rows: samples of many moments follow one another at once."""


class SampleTopics(DeviceTopics):
    """Sensors of a drone's state and distance sensors: all drones at once, at many moments."""

    needs_scene = False

    def __init__(self, simulator: SimulatorNode, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        self._kinds = MESSAGES[device.type](device)
        self._period = simulator.physics.freq // device.rate  # ticks
        self._sensor: SampledSensor[Any, Any] | None = None
        self._sampled: tuple[str, ...] = ()  # drones in the sensor's rows
        self._lives: dict[str, Life] = {}
        self._row: _Row | None = None

    def look(self, drones: Collection[str]) -> None:
        """See who listens; `drones` are those that there are."""
        super().look(drones)
        self._row = None  # also for the sake of publishers that are destroyed

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        topics = [(type(kind.prototype(DRONE)), kind.suffix, SAMPLE_QOS) for kind in self._kinds]
        return [*topics, MARKERS] if isinstance(self._device.cfg, RangerSensorCfg) else topics

    def _initialize(self, scene: Scene) -> None:
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(
            self._file.model, self._drones, scene.backend, DRONE, scene.show
        )
        before, sensor = self._sensor, self._device.cfg.build()
        assert isinstance(sensor, SampledSensor)
        sensor.initialize(self._backend)
        if before is not None:
            rows = {drone: row for row, drone in enumerate(self._sampled)}
            stay = [row for row, drone in enumerate(self._drones) if drone in rows]
            sensor.take_over(before, {row: rows[self._drones[row]] for row in stay})
        self._sensor, self._sampled = sensor, self._drones
        layouts = [
            layout(
                [kind.prototype(drone) for drone in self._drones],
                ["header.stamp"],
                kind.numbers,
                kind.floats,
            )
            for kind in self._kinds
        ]
        self._messages, self._row = SerialisedMessages(joined(layouts)), None

    def reset(self, lives: Mapping[str, Life]) -> None:
        """Begin anew with other errors where a drone was put back."""
        before, self._lives = self._lives, {drone: lives[drone] for drone in self._drones}
        for row, (drone, life) in enumerate(self._lives.items()):
            if before.get(drone) != life:
                self._begin(row)
        self._starts = np.array([life.tick for life in self._lives.values()], int)

    def _begin(self, row: int) -> None:
        assert self._sensor is not None
        self._sensor.begin(row, self._lives[self._drones[row]].resets)

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Sample all drones, and publish what somebody listens to; each moment once."""
        del scene
        sensor = self._sensor
        if sensor is None or not self._drones:
            return
        for row in self._moments(snapshots):
            number = (row[0].tick - self._starts) // self._period  # of the samples, by drone
            if (number == sensor.n_samples - 1).any():  # time stands still
                row, number = row[1:], number + 1
            if row:
                for drone in np.flatnonzero(number < sensor.n_samples).tolist():  # time went back
                    self._begin(drone)
                if (left_out := number - sensor.n_samples).any():
                    sensor.skip(left_out, 1 / self._device.rate)
                self._sample(row, sensor)

    def _sample(self, snapshots: Sequence[Snapshot], sensor: SampledSensor[Any, Any]) -> None:
        """Sample at moments one period apart."""
        listeners, drones = self.listeners, self._drones
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in drones])
        self._backend.show(snapshots, self._rows)
        sensor.update(1 / self._device.rate)
        self._send([snapshot.time_ns for snapshot in snapshots], sensor)
        markers, latest = len(self._kinds), (len(snapshots) - 1) * len(drones)
        for i, drone in enumerate(drones):
            if (drone, markers) in listeners:
                sensor.debug_vis(shapes := ShapeRecorder(self._file.model, worlds=(latest + i,)))
                drawn = marker_array(shapes, snapshots[-1].time_ns, self._device.rate)
                self._publish(drone, markers, drawn)

    def _moments(self, snapshots: Sequence[Snapshot]) -> list[list[Snapshot]]:
        """One snapshot of each moment, in rows of moments one period apart."""
        rows: list[list[Snapshot]] = []
        for snapshot in snapshots:
            passed = snapshot.tick - rows[-1][-1].tick if rows else -1
            if passed == self._period:
                rows[-1].append(snapshot)
            elif passed:
                rows.append([snapshot])
        return rows

    def _send(self, times_ns: Sequence[int], sensor: SampledSensor[Any, Any]) -> None:
        """Publish what somebody listens to of the samples that were taken at these times."""
        data, kinds = sensor.data, self._kinds
        blocks = [block for kind in kinds for block in kind.values(data)]
        stamps = np.array(times_ns)[:, None] - np.rint(sensor.ages * 1e9).astype(int)  # by drone
        messages = self._messages.series(np.tile(stamps, len(kinds)), blocks)
        shape = (len(times_ns), len(self._drones))
        valid = [
            np.ones(shape, bool) if kind.valid is None else kind.valid(data).reshape(shape)
            for kind in kinds
        ]
        self._row = row = self._row or self._addressed()
        row.outbox.send(messages, np.ascontiguousarray(np.hstack(valid)[:, row.messages]))

    def _addressed(self) -> _Row:
        """Whom to send something to."""
        publishers, n = self._publishers, len(self._drones)
        addressed = [
            (number * n + i, publishers[drone][number])
            for number in range(len(self._kinds))
            for i, drone in enumerate(self._drones)
            if (drone, number) in self.listeners and drone in publishers
        ]
        places = self._messages.places
        return _Row(
            [message for message, _ in addressed],
            Outbox([(publisher, places[message]) for message, publisher in addressed]),
        )


class _Row(NamedTuple):
    """What somebody listens to of the messages of a moment."""

    messages: list[int]
    """Their numbers."""
    outbox: Outbox
    """For these."""
