"""<drone>/<sensor>: lidars and cameras, sensed beside the physics.

The physics thread only copies the state, and only if the last one is done with. Rays and pictures
are made of the copy, in a thread for each rate. What comes too fast for it is left out.
"""

from __future__ import annotations

import copy
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Image, LaserScan, PointCloud2

from crazyflow_ros.ros import frame_ids, sensor_messages
from crazyflow_ros.ros.sensor_config import Camera, Lidar, load
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import (
    MujocoBackend,
    RenderingUnavailable,
    SensorContext,
)

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_QOS = QoSProfile(depth=5)  # reliable, which suits every subscriber
_IMAGES = {"rgb": "image_raw", "depth": "depth/image_raw", "segmentation": "segmentation/image_raw"}


class LidarTopic:
    """<drone>/<name>: a LaserScan, or a PointCloud2 with several channels, in <drone>/base_link."""

    def __init__(self, simulator: Simulator, drone: str, name: str, lidar: Lidar) -> None:
        self.sensor = lidar.configuration(drone, name).build()
        self._lidar = lidar
        self._frame = frame_ids.base_link(drone)
        kind = LaserScan if len(lidar.elevations) == 1 else PointCloud2
        self._publisher = simulator.create_publisher(kind, f"{drone}/{name}", _QOS)

    def wanted(self) -> bool:
        """Whether somebody listens."""
        return self._publisher.get_subscription_count() > 0

    def publish(self, stamp: Time) -> None:
        """Publish what the sensor has sensed."""
        distances, lidar = self.sensor.data.distances[0], self._lidar
        if len(lidar.elevations) == 1:
            angles = lidar.pattern().azimuths()
            message: Any = sensor_messages.laser_scan(
                angles, distances, lidar.max_distance, lidar.rate
            )
        else:
            reach = np.where(distances < 0.0, np.nan, distances)[:, None]
            points = (reach * self.sensor.directions).reshape(-1, lidar.samples, 3)
            message = sensor_messages.point_cloud(points)
        message.header.stamp, message.header.frame_id = stamp, self._frame
        self._publisher.publish(message)


class CameraTopics:
    """<drone>/<name>/image_raw and the like, with camera_info, in the optical frame."""

    def __init__(self, simulator: Simulator, drone: str, name: str, camera: Camera) -> None:
        self.sensor = camera.configuration(drone, name).build()
        self._frame = f"{drone}/fpv_camera_optical_frame"
        self._images = {
            kind: simulator.create_publisher(Image, f"{drone}/{name}/{_IMAGES[kind]}", _QOS)
            for kind in camera.data_types
        }
        self._info = simulator.create_publisher(CameraInfo, f"{drone}/{name}/camera_info", _QOS)

    def wanted(self) -> bool:
        """Whether somebody listens."""
        publishers = (*self._images.values(), self._info)
        return any(publisher.get_subscription_count() for publisher in publishers)

    def publish(self, stamp: Time) -> None:
        """Publish what the sensor has sensed."""
        data = self.sensor.data
        messages = [(self._info, sensor_messages.camera_info(self.sensor.intrinsics))]
        for kind, publisher in self._images.items():
            messages.append((publisher, sensor_messages.image(kind, getattr(data, kind)[0])))
        for publisher, message in messages:
            message.header.stamp, message.header.frame_id = stamp, self._frame
            publisher.publish(message)


class SensorThread:
    """Senses and publishes what has the same rate."""

    def __init__(self, simulator: Simulator, rate: int) -> None:
        self._mirror, self._logger = simulator.physics.mirror, simulator.get_logger()
        self._topics: list[LidarTopic | CameraTopics] = []
        self._working: list[LidarTopic | CameraTopics] = []
        self._context: SensorContext | None = None
        self._data: mujoco.MjData | None = None
        self._model: mujoco.MjModel | None = None
        self._is_new = True
        self._time_ns = 0
        self._due, self._idle = threading.Event(), threading.Event()
        self._idle.set()
        simulator.physics.every(rate, self._copy, "sensors")
        threading.Thread(target=self._main, name=f"sensors {rate} Hz", daemon=True).start()

    def add(self, topics: LidarTopic | CameraTopics) -> None:
        """Sense and publish these, too; before the physics starts."""
        self._topics.append(topics)

    def _copy(self, snapshot: Snapshot) -> None:
        """In the physics thread."""
        if not self._idle.is_set() or not any(topics.wanted() for topics in self._topics):
            return
        if self._mirror.model is not self._model:  # also when the scene has changed
            self._model, self._data, self._is_new = self._mirror.model, None, True
        self._data = self._mirror.copy_physics_data(self._data)
        self._time_ns = snapshot.time_ns
        self._idle.clear()
        self._due.set()

    def _main(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            try:
                self._sense()
            except RenderingUnavailable as error:
                self._logger.warning(f"sensors: {error}")
                self._topics = [t for t in self._topics if not isinstance(t, CameraTopics)]
                self._is_new = True
            except Exception as error:  # time goes on
                self._logger.error(f"sensors: {error!r}", throttle_duration_sec=1.0)
            self._idle.set()

    def _sense(self) -> None:
        if self._is_new:
            self._initialize()
        seconds, nanoseconds = divmod(self._time_ns, 1_000_000_000)
        stamp = Time(sec=seconds, nanosec=nanoseconds)
        for topics in self._working:
            if topics.wanted():
                topics.sensor.sense()
                topics.publish(stamp)

    def _initialize(self) -> None:
        """Look at the scene as it is; sensors of drones that are gone rest."""
        assert self._data is not None
        if self._context is not None:
            self._context.close()
        # A copy, in which drawing may set the size of its buffers.
        backend = MujocoBackend(copy.copy(self._model), self._data)
        self._working = []
        for topics in self._topics:
            with suppress(ValueError):
                topics.sensor.initialize(backend)
                self._working.append(topics)
        self._context = SensorContext(backend, [topics.sensor for topics in self._working])
        self._is_new = False


def declare(simulator: Simulator) -> None:
    """Add the topics that the file of the parameter `sensors` asks for."""
    path = simulator.parameters.sensors
    threads: dict[int, SensorThread] = {}
    for (drone, name), device in (load(path, simulator.drones) if path else {}).items():
        if device.rate not in threads:
            threads[device.rate] = SensorThread(simulator, device.rate)
        threads[device.rate].add(
            LidarTopic(simulator, drone, name, device)
            if isinstance(device, Lidar)
            else CameraTopics(simulator, drone, name, device)
        )
