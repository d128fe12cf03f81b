"""Topics of sensors that are sampled: those of all drones that carry one at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.cdr import SerialisedMessages, joined, layout
from crazyflow_ros.ros.device_topics import DeviceTopics, Scene
from crazyflow_ros.ros.sample_messages import MESSAGES
from crazyflow_ros.ros.sensor_config import Device, SensorFile
from crazyflow_ros.ros.sensor_kinds import DRONE
from crazyflow_ros.ros.sensor_markers import MARKERS, marker_array
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import RangerSensorCfg, ShapeRecorder
from crazyflow_ros.sensors.state_backend import StateBackend

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

SAMPLE_QOS = QoSProfile(depth=100)
"""Of what is sent in rows: samples of many moments follow one another at once."""


class SampleTopics(DeviceTopics):
    """Sensors of a drone's state and distance sensors: all drones are sensed at once."""

    def __init__(self, simulator: Simulator, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        self._kinds = MESSAGES[device.type](device)
        self.needs_scene = device.type in ("range", "multiranger", "optical_flow")

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        topics = [(type(kind.prototype(DRONE)), kind.suffix, SAMPLE_QOS) for kind in self._kinds]
        return [*topics, MARKERS] if isinstance(self._device.cfg, RangerSensorCfg) else topics

    def _initialize(self, scene: Scene) -> None:
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(self._file.model, self._drones, scene.backend, DRONE)
        self._sensor = self._device.cfg.build()
        self._sensor.initialize(self._backend)
        layouts = [
            layout(
                [kind.prototype(drone) for drone in self._drones],
                ["header.stamp"],
                kind.numbers,
                kind.floats,
            )
            for kind in self._kinds
        ]
        self._messages = SerialisedMessages(joined(layouts))

    def reset(self, drones: Collection[str]) -> None:
        """Begin anew with other errors."""
        rows = [i for i, drone in enumerate(self._drones) if drone in drones]
        if rows:
            self._sensor.reset(rows)

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Sample all drones, and publish what somebody listens to."""
        listeners, drones = self.listeners, self._drones
        if not drones:
            return
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in drones])
        self._backend.show(snapshots, self._rows)
        self._sensor.update(1 / self._device.rate)
        self._send([snapshot.time_ns for snapshot in snapshots])
        markers = len(self._kinds)
        for i, drone in enumerate(drones):
            if (drone, markers) in listeners:
                self._sensor.debug_vis(shapes := ShapeRecorder(self._file.model, worlds=(i,)))
                drawn = marker_array(shapes, snapshots[-1].time_ns, self._device.rate)
                self._publish(drone, markers, drawn)

    def _send(self, times_ns: Sequence[int]) -> None:
        """Publish what somebody listens to of the samples that were taken at these times."""
        data, ages, kinds = self._sensor.data, self._sensor.ages.tolist(), self._kinds
        blocks = [block for kind in kinds for block in kind.values(data)]
        stamps = [time - round(age * 1e9) for time, age in zip(times_ns, ages)]
        messages = self._messages.series(stamps, blocks)
        shape = (len(times_ns), len(self._drones))
        valid = [
            np.ones(shape, bool) if kind.valid is None else kind.valid(data).reshape(shape)
            for kind in kinds
        ]
        addresses = self._addresses()
        indices = [address.message for address in addresses]
        failure: RuntimeError | None = None
        for moment, is_valid in enumerate(np.hstack(valid).tolist()):
            for address, payload in zip(addresses, messages.payloads(moment, indices)):
                if is_valid[address.message]:
                    try:
                        address.publish(payload)
                    except RuntimeError as error:
                        if address.drone in self._publishers:  # or it has gone meanwhile
                            failure = error
        if failure is not None:
            raise failure

    def _addresses(self) -> list[_Address]:
        """Whom to send something to."""
        publishers, n = self._publishers, len(self._drones)
        return [
            # Not publish(), which takes twice as long.
            _Address(drone, publishers[drone][number].handle.publish_raw, number * n + i)
            for number in range(len(self._kinds))
            for i, drone in enumerate(self._drones)
            if (drone, number) in self.listeners and drone in publishers
        ]


class _Address(NamedTuple):
    """A topic that somebody listens to."""

    drone: str
    publish: Callable[[bytes], None]
    message: int
    """Number of its message in a series."""
