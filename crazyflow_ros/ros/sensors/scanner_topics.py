"""Topics of lidars that scan while they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from sensor_msgs.msg import PointCloud2

from crazyflow_ros.ros.sensors import lidar_and_camera_messages
from crazyflow_ros.ros.sensors.device_topics import DeviceTopics, Scene, put_header
from crazyflow_ros.ros.sensors.devices import DRONE, Device, Topic
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.scene.frames import quat_from_matrix, rotation_matrix
from crazyflow_ros.scene.rays import FrameRays
from crazyflow_ros.scene.surfaces import surfaces
from crazyflow_ros.sensors.objects import subtree
from crazyflow_ros.sensors.state_backend import StateBackend

_POSES = 250  # Hz, at most, at which poses are known; between them they are interpolated
_XYZI: dict[str, tuple[str, int]] = {"x": ("<f4", 0), "y": ("<f4", 4), "z": ("<f4", 8)}
# Types and offsets of the points of velodyne_pointcloud (PointcloudXYZIRT) and ouster_ros (Point,
# with `ring` in the type that LIO-SAM and FAST-LIO read: the byte after it is zero, so that it is
# the driver's own as well), and of livox_ros_driver2 (LivoxPointXyzrtlt, xfer_format 0).
_LAYOUTS: dict[str, tuple[int, dict[str, tuple[str, int]]]] = {
    "velodyne": (
        22,
        _XYZI | {"intensity": ("<f4", 12), "ring": ("<u2", 16), "time": ("<f4", 18)},
    ),
    "ouster": (
        48,
        _XYZI
        | {"intensity": ("<f4", 16), "t": ("<u4", 20), "reflectivity": ("<u2", 24)}
        | {"ring": ("u1", 26), "ambient": ("<u2", 28), "range": ("<u4", 32)},
    ),
    "livox": (
        26,
        _XYZI
        | {"intensity": ("<f4", 12), "tag": ("u1", 16), "line": ("u1", 17)}
        | {"timestamp": ("<f8", 18)},
    ),
}
_WHITE = {"velodyne": 100.0, "ouster": 100.0, "livox": 150.0}
"""Reflectivity of a white matt surface, seen straight on, in the scale of each vendor."""
_PHOTONS = 1000.0  # of a white matt surface at 1 m, for `intensity` of an Ouster


@dataclass
class _Scan:
    """The scan under way of a drone: C columns of R rays."""

    start_ns: int
    tick: int
    """At which the latest pose was taken."""
    pose: tuple[np.ndarray, np.ndarray]
    """Position (3,) and axes (3, 3) of the lidar at that time."""
    rays: np.ndarray
    """Directions in the axes of the lidar, (C, R, 3)."""
    ranges: np.ndarray
    """Distances [m], (C, R), infinite without a hit."""
    glow: np.ndarray
    """Reflectance times cosine of the incidence, (C, R)."""


class ScannerTopics(DeviceTopics):
    """<drone>/<name>: the points of each scan, as the driver of such a lidar publishes them.

    Each column of rays leaves from the pose of its time, so that a drone that moves distorts the
    scan. Other bodies are where they are at the next known pose.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        rate, freq = self._device.rate, self._simulator.physics.freq
        rates = range(rate, max(rate, _POSES) + 1, rate)
        self.rate = max(one for one in rates if freq % one == 0)
        self._period = freq // self.rate
        self._scans: dict[str, _Scan] = {}
        self._lives: Mapping[str, Life] = {}
        driver = self._device.cfg.driver
        size, fields = _LAYOUTS[driver]
        formats, offsets = zip(*fields.values())
        self._layout = np.dtype(
            {"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": size}
        )
        self._white = _WHITE[driver]

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """The points."""
        size, _ = _LAYOUTS[device.cfg.driver]
        rays = device.cfg.pattern.sweep(0.0, 1.0 / device.rate)
        return [Topic(PointCloud2, display="PointCloud2").of_size(size * rays.size // 3)]

    def _initialize(self, scene: Scene) -> None:
        cfg, model = self._device.cfg, scene.backend.model
        self._rows = [scene.names.index(drone) for drone in self._drones]
        self._backend = StateBackend(self._file.model, self._drones, scene.backend, DRONE)
        bodies = [subtree(model, model.body(f"drone:{drone}").id) for drone in self._drones]
        every = np.arange(mujoco.mjNGROUP)
        hit = every if cfg.include_geom_groups is None else cfg.include_geom_groups
        groups = np.isin(every, hit).astype(np.uint8)
        own = bodies if cfg.exclude_parent_body else [[] for _ in bodies]
        self._rays = FrameRays(model, own, groups, cfg.max_distance)
        self._reflectance = np.append(surfaces(model)[:, 0], 0.0)  # last: no geom

    def reset(self, lives: Mapping[str, Life]) -> None:
        """Forget the scans of drones that were put back."""
        for drone in self._lives.keys() | lives.keys():
            if self._lives.get(drone) != lives.get(drone):
                self._scans.pop(drone, None)
        self._lives = dict(lives)

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Cast the rays since the last pose of the drones whose topics have subscribers."""
        (snapshot,), part = snapshots, snapshots[0].tick // self._period
        is_start = part % (self.rate // self._device.rate) == 0
        self._backend.show(snapshots, self._rows)
        places, axes = self._backend.frame(self._device.cfg.frame)
        for row, drone in enumerate(self._drones):
            scan, pose = self._scans.pop(drone, None), (places[row], axes[row])
            if (drone, 0) not in self.listeners:
                continue
            if scan is not None and snapshot.tick - scan.tick == self._period:
                self._cast(scan, pose, row, snapshot.tick, scene)
                if is_start:
                    message = self._message(scan)
                    put_header(message, scan.start_ns, self._device.frame(drone))
                    self._publish(drone, 0, message)
            elif scan is not None and scan.tick != snapshot.tick:
                scan = None  # time has jumped
            if is_start:
                scan = self._begun(snapshot, pose)
            if scan is not None:
                scan.tick, scan.pose = snapshot.tick, pose
                self._scans[drone] = scan

    def _begun(self, snapshot: Snapshot, pose: tuple[np.ndarray, np.ndarray]) -> _Scan:
        time_ns = snapshot.time_ns
        rays = self._device.cfg.pattern.sweep(time_ns / 1e9, 1.0 / self._device.rate)
        ranges = np.full(rays.shape[:2], np.inf)
        return _Scan(time_ns, snapshot.tick, pose, rays, ranges, np.zeros_like(ranges))

    def _cast(
        self, scan: _Scan, pose: tuple[np.ndarray, np.ndarray], row: int, tick: int, scene: Scene
    ) -> None:
        """Cast the columns between the pose of the scan and this one, which is that of a tick."""
        cfg, n_parts, n_columns = self._device.cfg, self.rate // self._device.rate, len(scan.rays)
        begun = (tick // self._period - 1) % n_parts * n_columns
        since = np.arange(n_columns) * n_parts - begun
        here = np.flatnonzero((since >= 0) & (since < n_columns))
        share = since[here, None] / n_columns  # from pose to pose
        first, last = (quat_from_matrix(axes) for axes in (scan.pose[1], pose[1]))
        quats = first + share * (last * np.copysign(1.0, first @ last) - first)
        axes = rotation_matrix(quats / np.linalg.norm(quats, axis=1, keepdims=True))
        origins = scan.pose[0] + share * (pose[0] - scan.pose[0])
        directions = scan.rays[here] @ axes.mT
        frames = np.full(len(here), row)
        distances, normals, geoms = self._rays.cast(
            scene.backend.data[0], origins[:, None], directions, frames, one_origin=True
        )
        drone = self._drones[row]
        scan.ranges[here] = cfg.ranges(distances.ravel(), drone, tick).reshape(distances.shape)
        cosines = np.abs((normals * directions).sum(axis=-1))
        scan.glow[here] = self._reflectance[geoms] * cosines

    def _message(self, scan: _Scan) -> PointCloud2:
        is_hit, driver = np.isfinite(scan.ranges), self._device.cfg.driver
        reach = np.where(is_hit, scan.ranges, np.nan)
        seconds = np.arange(len(reach))[:, None] / (len(reach) * self._device.rate)
        rings, reflectivity = self._device.cfg.pattern.rings, self._white * scan.glow
        photons = np.nan_to_num(_PHOTONS * scan.glow / np.square(reach))
        values = {
            **dict(zip("xyz", np.moveaxis(scan.rays * reach[..., None], -1, 0))),
            "intensity": photons if driver == "ouster" else reflectivity,
            "reflectivity": reflectivity,
            "range": np.nan_to_num(reach) * 1e3,
            "time": seconds,
            "t": seconds * 1e9,
            "timestamp": scan.start_ns + seconds * 1e9,
            "ring": rings,
            "line": rings,
        }
        points = np.zeros(reach.shape, self._layout)
        for name in values.keys() & set(self._layout.names or ()):
            points[name] = values[name]
        is_organized = self._device.cfg.organized
        return lidar_and_camera_messages.point_cloud(
            points.T if is_organized else points[is_hit][None]
        )
