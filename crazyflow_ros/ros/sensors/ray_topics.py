"""Topics of sensors that cast rays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sensor_msgs.msg import LaserScan, PointCloud2, Range

from crazyflow_ros.ros.messages.cdr import layout
from crazyflow_ros.ros.messages.numeric_message import elements
from crazyflow_ros.ros.messages.outbox import SerialisedMessages
from crazyflow_ros.ros.sensors import lidar_and_camera_messages
from crazyflow_ros.ros.sensors.device_topics import (
    MARKERS,
    Audience,
    DeviceTopics,
    Scene,
    marker_array,
    put_header,
)
from crazyflow_ros.ros.sensors.devices import DRONE, Device, Topic
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import LidarPatternCfg, ShapeRecorder
from crazyflow_ros.sensors.state_backend import StateBackend

_TO_OPTICAL = np.array([1.0, -1.0, -1.0])  # from MuJoCo's camera frame


class RayTopics(DeviceTopics):
    """<drone>/<name>: ends of rays as a PointCloud2, or as a LaserScan if they are planar."""

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """The readings, and markers."""
        kind = LaserScan if _is_planar(device) else PointCloud2
        return [Topic(kind, display=kind.__name__), MARKERS]

    def _initialize(self, scene: Scene) -> None:
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(self._file.model, self._drones, scene.backend, DRONE)
        self._sensor = self._device.cfg.build()
        self._sensor.initialize(self._backend)
        if _is_planar(self._device):
            paths = elements("ranges", self._sensor.num_rays)
            scans = [self._scan(drone) for drone in self._drones]
            self._scans = SerialisedMessages(layout(scans, [paths]))
            self._scan_ranges = np.full((len(scans), len(paths)), np.inf)

    def _scan(self, drone: str) -> LaserScan:
        cfg, rate = self._device.cfg, self._device.rate
        angles, limits = cfg.pattern.azimuths(), (cfg.min_distance, cfg.max_distance)
        scan = lidar_and_camera_messages.laser_scan(angles, np.zeros(len(angles)), limits, rate)
        put_header(scan, 0, self._device.frame(drone))
        return scan

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Cast the rays of the drones whose topics have subscribers."""
        del scene
        (snapshot,), listeners = snapshots, self.listeners
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in self._drones])
        if not self._backend.casting.any():
            return
        self._backend.show(snapshots, self._rows)
        self._sensor.sense()
        if _is_planar(self._device):
            self._publish_scans(listeners, snapshot)
        for i, drone in enumerate(self._drones):
            if (drone, 0) in listeners and not _is_planar(self._device):
                message = self._message(i, snapshot)
                put_header(message, snapshot.time_ns, self._device.frame(drone))
                self._publish(drone, 0, message)
            if (drone, 1) in listeners:
                self._sensor.debug_vis(shapes := ShapeRecorder(self._file.model, worlds=(i,)))
                drawn = marker_array(shapes, snapshot.time_ns, self._device.rate)
                self._publish(drone, 1, drawn)

    def _publish_scans(self, listeners: Audience, snapshot: Snapshot) -> None:
        for i, drone in enumerate(self._drones):
            if (drone, 0) in listeners:
                self._scan_ranges[i] = self._ranges(i, snapshot)
        outbox = listeners.outbox or self._address(listeners, self._scans)
        self._scans.update(snapshot.time_ns, [self._scan_ranges])
        outbox.send(self._scans.words[None])

    def _ranges(self, row: int, snapshot: Snapshot) -> np.ndarray:
        distances = self._sensor.data.distances[row]
        ranges: np.ndarray = self._device.cfg.ranges(distances, self._drones[row], snapshot.tick)
        return ranges

    def _message(self, row: int, snapshot: Snapshot) -> PointCloud2 | Range:
        data, ranges = self._sensor.data, self._ranges(row, snapshot)
        reach = np.where(np.isfinite(ranges), ranges, np.nan)[:, None]
        ends = data.origins_w[row, 0] + reach * data.directions_w[row, 0] - data.pos_w[row]
        points = ends @ data.frame_axes_w[row, 0]
        if self._device.kind.is_camera:
            points = points * _TO_OPTICAL
        shape = self._device.cfg.pattern.shape
        packed = points.astype("<f4").view(lidar_and_camera_messages.XYZ)
        return lidar_and_camera_messages.point_cloud(packed.reshape(shape))


class HeightTopics(RayTopics):
    """<drone>/<name>: height above the surface below, infinite without one (REP 117)."""

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """The height, and markers."""
        del device
        return [Topic(Range, display="Range"), MARKERS]

    def _message(self, row: int, snapshot: Snapshot) -> Range:
        del snapshot
        is_nothing = (self._sensor.data.distances[row] < 0.0).all()
        return Range(
            radiation_type=Range.INFRARED,
            max_range=self._device.cfg.max_distance,
            range=np.inf if is_nothing else float(self._sensor.data.heights[row, 0]),
        )


def _is_planar(device: Device[Any]) -> bool:
    return isinstance(device.cfg.pattern, LidarPatternCfg) and device.cfg.pattern.is_planar
