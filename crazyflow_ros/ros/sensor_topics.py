"""Topics of sensors: what an entry of the sensors' file publishes, of all drones that carry it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from builtin_interfaces.msg import Time
from rclpy.exceptions import InvalidHandle
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, LaserScan, PointCloud2

from crazyflow_ros.ros import sensor_messages
from crazyflow_ros.ros.cdr import SerialisedMessages, joined, layout
from crazyflow_ros.ros.sample_messages import MESSAGES
from crazyflow_ros.ros.sensor_config import Device, SensorFile
from crazyflow_ros.ros.sensor_kinds import DRONE
from crazyflow_ros.ros.topics import STATE_QOS
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.state import DroneIndex
from crazyflow_ros.sensors import (
    CameraSensor,
    CameraSensorCfg,
    LidarPatternCfg,
    MujocoBackend,
    RayCastSensorCfg,
    SensorContext,
)
from crazyflow_ros.sensors.state_backend import StateBackend

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_QOS = QoSProfile(depth=5)  # reliable, which suits every subscriber
_PICTURES = {
    "info": (CameraInfo, "/camera_info"),
    "rgb": (Image, "/image_raw"),
    "depth": (Image, "/depth/image_raw"),
    "segmentation": (Image, "/segmentation/image_raw"),
    "jpeg": (CompressedImage, "/image_raw/compressed"),
}
"""What a camera publishes: type, and what follows its name."""


class Scene:
    """All drones and what is around them, as the sensors of one thread see it.

    Args:
        model: That of the mirror.
        names: Of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self.mirrored, self.names = model, tuple(names)
        self._model = copy.copy(model)  # in which drawing may set the size of its buffers
        self._data, self._index = mujoco.MjData(self._model), DroneIndex(self._model, names)
        self.backend = MujocoBackend(self._model, self._data)

    def show(self, snapshot: Snapshot) -> None:
        """Put all frames where they are in a snapshot."""
        self._index.write(snapshot, self._data)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)


class DeviceTopics(ABC):
    """The topics of one entry of the file.

    `add` and `look` are called in the executor's thread, `initialize`, `sense` and `reset` in that
    of the sensors.

    Args:
        simulator: The node.
        file: The file.
        device: The entry.

    Attributes:
        listeners: Drones and numbers of their topics that somebody listens to.
    """

    backlog = 1
    """Snapshots that wait to be sensed; of more the oldest are left out."""

    def __init__(self, simulator: Simulator, file: SensorFile, device: Device) -> None:
        self._simulator, self._file, self._device = simulator, file, device
        self._publishers: dict[str, list[Any]] = {}
        self.listeners: frozenset[tuple[str, int]] = frozenset()
        self._drones: tuple[str, ...] = ()

    def add(self, drone: str) -> None:
        """Create the publishers of a drone, if it carries the sensor."""
        if self._file.carries(drone, self._device):
            publishers = [
                self._simulator.create_publisher(kind, f"{drone}/{self._device.name}{suffix}", qos)
                for kind, suffix, qos in self._topics()
            ]
            self._publishers = self._publishers | {drone: publishers}

    def names(self, drones: Iterable[str]) -> list[str]:
        """Topics of those of the drones that carry the sensor."""
        return [
            f"{drone}/{self._device.name}{suffix}"
            for drone in drones
            if self._file.carries(drone, self._device)
            for _, suffix, _ in self._topics()
        ]

    def look(self, drones: Collection[str]) -> None:
        """See who listens; `drones` are those that there are."""
        self._publishers = {d: p for d, p in self._publishers.items() if d in drones}
        self.listeners = frozenset(
            (drone, number)
            for drone, publishers in self._publishers.items()
            for number, publisher in enumerate(publishers)
            if publisher.get_subscription_count()
        )

    def initialize(self, scene: Scene) -> None:
        """Prepare to sense in this scene."""
        self._drones = tuple(d for d in scene.names if self._file.carries(d, self._device))
        if self._drones:
            self._initialize(scene)

    def reset(self, drones: Collection[str]) -> None:
        """Take note that drones were put back to their initial state."""
        del drones

    @abstractmethod
    def sense(self, snapshot: Snapshot, scene: Scene) -> None:
        """Sense, and publish what somebody listens to."""

    @abstractmethod
    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        """Type, what follows the sensor's name, and quality of service of each topic."""

    @abstractmethod
    def _initialize(self, scene: Scene) -> None:
        """Prepare to sense; there is a drone that carries the sensor."""

    def _publish(self, drone: str, number: int, message: Any) -> None:
        """Publish a message or its bytes; unless the drone has gone meanwhile."""
        publisher = self._publishers.get(drone)
        if publisher is not None:
            with suppress(InvalidHandle):
                publisher[number].publish(message)


class SampleTopics(DeviceTopics):
    """Sensors of a drone's state and distance sensors: all drones are sensed at once."""

    backlog = 50

    def __init__(self, simulator: Simulator, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        self._kinds = MESSAGES[device.type](device)

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(type(kind.prototype(DRONE)), kind.suffix, STATE_QOS) for kind in self._kinds]

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

    def sense(self, snapshot: Snapshot, scene: Scene) -> None:
        """Sample all drones, and publish what somebody listens to."""
        listeners, drones = self.listeners, self._drones
        if not drones:
            return
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in drones])
        self._backend.show(snapshot, self._rows)
        self._sensor.update(1 / self._device.rate)
        data = self._sensor.data
        blocks = [block for kind in self._kinds for block in kind.values(data)]
        self._messages.update(snapshot.time_ns - round(self._sensor.age * 1e9), blocks)
        addresses = []
        for number, kind in enumerate(self._kinds):
            there = np.ones(len(drones), bool) if kind.valid is None else kind.valid(data)
            addresses += [
                (drone, number, number * len(drones) + i)
                for i, drone in enumerate(drones)
                if there[i] and (drone, number) in listeners
            ]
        payloads = self._messages.payloads([index for _, _, index in addresses])
        for (drone, number, _), payload in zip(addresses, payloads):
            self._publish(drone, number, payload)


class LidarTopics(DeviceTopics):
    """<drone>/<name>: a LaserScan, or a PointCloud2 with several channels."""

    def __init__(self, simulator: Simulator, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        assert isinstance(device.cfg, RayCastSensorCfg)
        assert isinstance(device.cfg.pattern, LidarPatternCfg)
        self._cfg, self._pattern = device.cfg, device.cfg.pattern
        self._is_planar = len(self._pattern.elevations) == 1

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(LaserScan if self._is_planar else PointCloud2, "", _QOS)]

    def _initialize(self, scene: Scene) -> None:
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(self._file.model, self._drones, scene.backend, DRONE)
        self._sensor = self._cfg.build()
        self._sensor.initialize(self._backend)

    def sense(self, snapshot: Snapshot, scene: Scene) -> None:
        """Cast the rays of the drones that somebody listens to."""
        heard = [(i, d) for i, d in enumerate(self._drones) if (d, 0) in self.listeners]
        if not heard:
            return
        self._backend.casting[:] = False
        self._backend.casting[[i for i, _ in heard]] = True
        self._backend.show(snapshot, self._rows)
        self._sensor.sense()
        for i, drone in heard:
            message = self._message(self._sensor.data.distances[i])
            _stamp(message, snapshot.time_ns, self._device.frame(drone))
            self._publish(drone, 0, message)

    def _message(self, distances: np.ndarray) -> LaserScan | PointCloud2:
        if self._is_planar:
            return sensor_messages.laser_scan(
                self._pattern.azimuths(), distances, self._cfg.max_distance, self._device.rate
            )
        reach = np.where(distances < 0.0, np.nan, distances)[:, None]
        points = (reach * self._sensor.directions).reshape(-1, self._pattern.samples, 3)
        return sensor_messages.point_cloud(points)


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
        return [(*_PICTURES[kind], _QOS) for kind in self._kinds]

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

    def sense(self, snapshot: Snapshot, scene: Scene) -> None:
        """Draw for the drones that somebody listens to."""
        del scene
        for drone in self._drones:
            numbers = [number for other, number in sorted(self.listeners) if other == drone]
            if not numbers:
                continue
            sensor = self._sensors[drone]
            sensor.sense()
            for number in numbers:
                message = self._message(sensor, self._kinds[number])
                _stamp(message, snapshot.time_ns, self._device.frame(drone))
                self._publish(drone, number, message)

    def _message(self, sensor: CameraSensor, kind: str) -> CameraInfo | Image | CompressedImage:
        if kind == "info":
            return sensor_messages.camera_info(sensor.intrinsics)
        pictures = getattr(sensor.data, "rgb" if kind == "jpeg" else kind)
        if kind == "jpeg":
            return sensor_messages.compressed(pictures[0])
        return sensor_messages.image(kind, pictures[0])


def _stamp(message: Any, time_ns: int, frame: str) -> None:
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    message.header.stamp = Time(sec=seconds, nanosec=nanoseconds)
    message.header.frame_id = frame
