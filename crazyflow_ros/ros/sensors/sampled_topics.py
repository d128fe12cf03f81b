"""Topics of sensors that are sampled, for all drones that carry one at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.messages.cdr import joined
from crazyflow_ros.ros.messages.outbox import SerialisedMessages
from crazyflow_ros.ros.sensors.device_topics import (
    MARKERS,
    Audience,
    DeviceTopics,
    Scene,
    marker_array,
)
from crazyflow_ros.ros.sensors.devices import DRONE, Device, SensorFile, Topic
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.sensors import ShapeRecorder
from crazyflow_ros.sensors.sampled import SampledSensor
from crazyflow_ros.sensors.state_backend import StateBackend

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

SAMPLE_QOS = QoSProfile(depth=100)
"""A deep queue, because the samples of many moments are sent at once."""


class SampleTopics(DeviceTopics):
    """Sensors that are sampled: all drones at once, at many moments.

    Publishes the messages of its `Kind`, and markers if the configuration has `debug_vis`.
    """

    needs_scene = False

    def __init__(self, simulator: Host, file: SensorFile, device: Device[Any]) -> None:
        super().__init__(simulator, file, device)
        self._contents = device.kind.messages(device)
        self._period = simulator.physics.freq // device.rate  # ticks
        self._sensor: SampledSensor[Any, Any] | None = None
        self._sampled: tuple[str, ...] = ()  # drones in the sensor's rows
        self._lives: dict[str, Life] = {}

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return one topic for each message, and markers."""
        topics = [
            Topic(message.kind, message.suffix, message.display, SAMPLE_QOS)
            for message in device.kind.messages(device)
        ]
        return [*topics, MARKERS] if device.cfg.debug_vis else topics

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
        self._prepare_messages()

    def _prepare_messages(self) -> None:
        """Serialise the messages; `_send` fills in the numbers."""
        layouts = [message.layout(self._drones) for message in self._contents]
        self._messages = SerialisedMessages(joined(layouts))

    def reset(self, lives: Mapping[str, Life]) -> None:
        """Restart the samples of drones that have been reset, with new errors."""
        before, self._lives = self._lives, {drone: lives[drone] for drone in self._drones}
        for row, (drone, life) in enumerate(self._lives.items()):
            if before.get(drone) != life:
                self._begin(row)
        self._starts = np.array([life.tick for life in self._lives.values()], int)

    def _begin(self, row: int) -> None:
        assert self._sensor is not None
        self._sensor.begin(row, self._lives[self._drones[row]].resets)

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Sample all drones, each moment once, and publish the samples that have subscribers."""
        del scene
        sensor = self._sensor
        if sensor is None or not self._drones:
            return
        ticks = np.array([snapshot.tick for snapshot in snapshots])
        first = np.flatnonzero(np.diff(ticks, prepend=-1))  # where moments begin
        gaps = np.flatnonzero(np.diff(ticks[first]) != self._period) + 1
        for moments in np.split(first, gaps):  # one period apart
            row = [snapshots[i] for i in moments]
            number = (row[0].tick - self._starts) // self._period  # of the sample, by drone
            if (number == sensor.n_samples - 1).any():  # time stands still
                row, number = row[1:], number + 1
            if row:
                for drone in np.flatnonzero(number < sensor.n_samples).tolist():  # time went back
                    self._begin(drone)
                if (left_out := number - sensor.n_samples).any():
                    sensor.skip(left_out, 1 / self._device.rate)
                self._sample(row, sensor)

    def _sample(self, snapshots: Sequence[Snapshot], sensor: SampledSensor[Any, Any]) -> None:
        """Sample at moments one period apart, and publish the samples."""
        listeners, drones = self.listeners, self._drones
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in drones])
        self._backend.show(snapshots, self._rows)
        sensor.update(1 / self._device.rate)
        if not listeners:  # the last one has just left
            return
        self._send([snapshot.time_ns for snapshot in snapshots], sensor, listeners)
        markers, latest = len(self._contents), (len(snapshots) - 1) * len(drones)
        for i, drone in enumerate(drones):
            if self._device.cfg.debug_vis and (drone, markers) in listeners:
                sensor.debug_vis(shapes := ShapeRecorder(self._file.model, worlds=(latest + i,)))
                drawn = marker_array(shapes, snapshots[-1].time_ns, self._device.rate)
                self._publish(drone, markers, drawn)

    def _send(
        self, times_ns: Sequence[int], sensor: SampledSensor[Any, Any], listeners: Audience
    ) -> None:
        data, messages, shape = sensor.data, self._contents, (len(times_ns), len(self._drones))
        times = np.array(times_ns)[:, None]
        stamps = np.tile(times - np.rint(sensor.ages * 1e9).astype(int), len(messages))
        blocks = [block for message in messages for block in message.values(data)]
        valid = [
            np.ones(shape, bool) if message.valid is None else message.valid(data).reshape(shape)
            for message in messages
        ]
        outbox = listeners.outbox or self._address(listeners, self._messages)
        wanted = np.hstack(valid)[:, listeners.numbers]
        outbox.send(self._messages.series(stamps, blocks), np.ascontiguousarray(wanted))
