"""Topics of sensors: what an entry of the sensors' file publishes, of all drones that carry it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from visualization_msgs.msg import MarkerArray

from crazyflow_ros.ros import sensor_messages
from crazyflow_ros.ros.cdr import SerialisedMessages, joined, layout
from crazyflow_ros.ros.device_topics import SENSOR_QOS, DeviceTopics, Scene, put_header
from crazyflow_ros.ros.sample_messages import MESSAGES
from crazyflow_ros.ros.sensor_config import Device, SensorFile
from crazyflow_ros.ros.sensor_kinds import DRONE
from crazyflow_ros.ros.sensor_markers import marker_array
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import (
    CameraSensor,
    CameraSensorCfg,
    RayCastSensorCfg,
    SensorContext,
    ShapeRecorder,
)
from crazyflow_ros.sensors.context import ContextSensor
from crazyflow_ros.sensors.state_backend import StateBackend

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

SAMPLE_QOS = QoSProfile(depth=100)
"""Of what is sent in rows: samples of many moments follow one another at once."""
_PICTURES = {
    "info": (CameraInfo, "/camera_info"),
    "rgb": (Image, "/image_raw"),
    "depth": (Image, "/depth/image_raw"),
    "segmentation": (Image, "/segmentation/image_raw"),
    "jpeg": (CompressedImage, "/image_raw/compressed"),
}
"""What a camera publishes: type, and what follows its name."""
_MARKERS = (MarkerArray, "/markers", SENSOR_QOS)
"""The beams of a sensor, drawn."""


class SampleTopics(DeviceTopics):
    """All sensors but cameras and contacts: all drones are sensed at once, at many moments."""

    def __init__(self, simulator: Simulator, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        self._kinds = MESSAGES[device.type](device)

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        is_big = isinstance(self._device.cfg, RayCastSensorCfg)
        qos, draws = SENSOR_QOS if is_big else SAMPLE_QOS, self._device.cfg.debug_vis
        topics = [(type(kind.prototype(DRONE)), kind.suffix, qos) for kind in self._kinds]
        return [*topics, _MARKERS] if draws else topics

    def _initialize(self, scene: Scene) -> None:
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(
            self._file.model, self._drones, scene.backend, DRONE, put=scene.show
        )
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
        del scene
        listeners, drones = self.listeners, self._drones
        if not drones:
            return
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in drones])
        self._backend.show(snapshots, self._rows)
        if isinstance(self._sensor, ContextSensor):
            self._sensor.sense()
        else:
            self._sensor.update(1 / self._device.rate)
        self._send([snapshot.time_ns for snapshot in snapshots])
        markers = len(self._kinds)
        for row, (snapshot, drone) in enumerate(product(snapshots, drones)):
            if (drone, markers) in listeners:
                self._sensor.debug_vis(shapes := ShapeRecorder(self._file.model, worlds=(row,)))
                self._publish(drone, markers, marker_array(shapes, snapshot.time_ns))

    def _send(self, times_ns: Sequence[int]) -> None:
        """Publish what somebody listens to of the samples that were taken at these times."""
        data, kinds = self._sensor.data, self._kinds
        blocks = [block for kind in kinds for block in kind.values(data)]
        stamps = np.array(times_ns) - np.round(self._sensor.ages * 1e9).astype(int)
        messages = self._messages.series(stamps.tolist(), blocks)
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


class CameraTopics(DeviceTopics):
    """<drone>/<name>/image_raw and the like, with camera_info, in the optical frame."""

    def __init__(self, simulator: Simulator, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        assert isinstance(device.cfg, CameraSensorCfg)
        self._cfg = device.cfg
        compressed = ["jpeg"] if "rgb" in device.cfg.data_types else []
        self._kinds = ["info", *device.cfg.data_types, *compressed]
        self._context: SensorContext | None = None

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(*_PICTURES[kind], SENSOR_QOS) for kind in self._kinds]

    def _initialize(self, scene: Scene) -> None:
        if self._context is not None:
            self._context.close()
        self._sensors: dict[str, CameraSensor] = {}
        for drone in self._drones:
            name = f"{self._cfg.name}:{drone}"
            camera = f"{self._cfg.camera_name}:{drone}"
            sensor = replace(self._cfg, name=name, camera_name=camera).build()
            sensor.initialize(scene.backend)
            self._sensors[drone] = sensor
        self._context = SensorContext(scene.backend, self._sensors.values())

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Draw for the drones that somebody listens to."""
        (snapshot,) = snapshots
        scene.show(snapshot, cameras=True)
        for drone in self._drones:
            numbers = [number for other, number in sorted(self.listeners) if other == drone]
            if not numbers:
                continue
            sensor = self._sensors[drone]
            sensor.sense()
            for number in numbers:
                message = self._message(sensor, self._kinds[number])
                put_header(message, snapshot.time_ns, self._device.frame(drone))
                self._publish(drone, number, message)

    def _message(self, sensor: CameraSensor, kind: str) -> CameraInfo | Image | CompressedImage:
        if kind == "info":
            return sensor_messages.camera_info(sensor.intrinsics)
        pictures = getattr(sensor.data, "rgb" if kind == "jpeg" else kind)
        if kind == "jpeg":
            return sensor_messages.compressed(pictures[0])
        return sensor_messages.image(kind, pictures[0])
