"""Topics of sensors that cast rays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.qos import QoSProfile
from sensor_msgs.msg import LaserScan, PointCloud2, Range

from crazyflow_ros.ros.messages.cdr import SerialisedMessages, below, layout
from crazyflow_ros.ros.messages.outbox import Outbox
from crazyflow_ros.ros.sensors import lidar_and_camera_messages
from crazyflow_ros.ros.sensors.device_topics import SENSOR_QOS, DeviceTopics, Scene, put_header
from crazyflow_ros.ros.sensors.markers import MARKERS, marker_array
from crazyflow_ros.ros.sensors.sensor_kinds import DRONE, KINDS
from crazyflow_ros.ros.sensors.sensors_file import Device, SensorFile
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.sensors import (
    LidarPatternCfg,
    RayCastSensorCfg,
    ShapeRecorder,
    TerrainHeightSensor,
    TerrainHeightSensorCfg,
)
from crazyflow_ros.sensors.backends.state import StateBackend
from crazyflow_ros.sensors.drone_rays import RaysCfg

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

_TO_OPTICAL = np.array([1.0, -1.0, -1.0])  # from MuJoCo's camera frame


class RayTopics(DeviceTopics):
    """<drone>/<name>: where rays end, as a PointCloud2."""

    def __init__(self, simulator: SimulatorNode, file: SensorFile, device: Device) -> None:
        super().__init__(simulator, file, device)
        assert isinstance(device.cfg, RayCastSensorCfg)
        self._cfg = device.cfg

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(PointCloud2, "", SENSOR_QOS), MARKERS]

    def _initialize(self, scene: Scene) -> None:
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(self._file.model, self._drones, scene.backend, DRONE)
        self._sensor = self._cfg.build()
        self._sensor.initialize(self._backend)

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Cast the rays of the drones that somebody listens to."""
        del scene
        (snapshot,), listeners = snapshots, self.listeners
        heard = {drone for drone, _ in listeners}
        self._backend.casting = np.array([drone in heard for drone in self._drones])
        if not self._backend.casting.any():
            return
        self._backend.show(snapshots, self._rows)
        self._sensor.sense()
        self._tell([i for i, drone in enumerate(self._drones) if (drone, 0) in listeners], snapshot)
        for i, drone in enumerate(self._drones):
            if (drone, 1) in listeners:
                self._sensor.debug_vis(shapes := ShapeRecorder(self._file.model, worlds=(i,)))
                drawn = marker_array(shapes, snapshot.time_ns, self._device.rate)
                self._publish(drone, 1, drawn)

    def _tell(self, rows: Sequence[int], snapshot: Snapshot) -> None:
        """Publish what some drones' rays meet."""
        for row in rows:
            message, drone = self._message(row, snapshot), self._drones[row]
            put_header(message, snapshot.time_ns, self._device.frame(drone))
            self._publish(drone, 0, message)

    def _ranges(self, row: int, snapshot: Snapshot) -> np.ndarray:
        assert isinstance(self._cfg, RaysCfg)
        distances = self._sensor.data.distances[row]
        return self._cfg.ranges(distances, self._drones[row], snapshot.tick)

    def _message(self, row: int, snapshot: Snapshot) -> PointCloud2 | Range:
        cfg, data, ranges = self._cfg, self._sensor.data, self._ranges(row, snapshot)
        assert isinstance(cfg, RaysCfg)
        reach = np.where(np.isfinite(ranges), ranges, np.nan)[:, None]
        ends = data.origins_w[row, 0] + reach * data.directions_w[row, 0] - data.pos_w[row]
        points = ends @ data.frame_axes_w[row, 0]
        if KINDS[self._device.type].is_camera:
            points = points * _TO_OPTICAL
        return lidar_and_camera_messages.point_cloud(points.reshape(*cfg.pattern.shape, 3))


class ScanTopics(RayTopics):
    """<drone>/<name>: where rays end that are in the xy plane of the frame, as a LaserScan."""

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(LaserScan, "", SENSOR_QOS), MARKERS]

    def _initialize(self, scene: Scene) -> None:
        super()._initialize(scene)
        prototypes = [self._prototype(drone) for drone in self._drones]
        paths = below("ranges", [str(i) for i in range(self._sensor.num_rays)])
        self._messages = SerialisedMessages(layout(prototypes, ["header.stamp"], [], [paths]))
        self._told = np.full((len(prototypes), len(paths)), np.inf)

    def _prototype(self, drone: str) -> LaserScan:
        cfg = self._cfg
        assert isinstance(cfg, RaysCfg)
        assert isinstance(cfg.pattern, LidarPatternCfg)
        angles, limits = cfg.pattern.azimuths(), (cfg.min_distance, cfg.max_distance)
        message = lidar_and_camera_messages.laser_scan(
            angles, np.zeros(len(angles)), limits, self._device.rate
        )
        put_header(message, 0, self._device.frame(drone))
        return message

    def _tell(self, rows: Sequence[int], snapshot: Snapshot) -> None:
        for row in rows:
            self._told[row] = self._ranges(row, snapshot)
        self._messages.update(snapshot.time_ns, [self._told])
        drones, publishers = self._drones, self._publishers  # of which some may have gone meanwhile
        there = [row for row in rows if drones[row] in publishers]
        places = self._messages.places
        outbox = Outbox([(publishers[drones[row]][0], places[row]) for row in there])
        outbox.send(self._messages.words[None])


class HeightTopics(RayTopics):
    """<drone>/<name>: the height above what is below, infinite where nothing is (REP 117)."""

    def _topics(self) -> list[tuple[Any, str, QoSProfile]]:
        return [(Range, "", SENSOR_QOS), MARKERS]

    def _message(self, row: int, snapshot: Snapshot) -> Range:
        del snapshot
        sensor = self._sensor
        assert isinstance(sensor, TerrainHeightSensor)
        assert isinstance(sensor.cfg, TerrainHeightSensorCfg)
        is_nothing = (sensor.data.distances[row] < 0.0).all()
        return Range(
            radiation_type=Range.INFRARED,
            max_range=sensor.cfg.max_distance,
            range=np.inf if is_nothing else float(sensor.data.heights[row, 0]),
        )
