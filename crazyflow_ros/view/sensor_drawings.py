"""Drawings of a drone's sensor readings: scans, point clouds, ranges and contacts."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import LaserScan, PointCloud2, Range

from crazyflow_ros.ros.messages import type_name, xyz
from crazyflow_ros.scene.frames import body_to_world, multiply
from crazyflow_ros.view.follower import Follower, Inbox
from crazyflow_ros.view.frame import Frame

KINDS = {type_name(kind): kind for kind in (LaserScan, PointCloud2, Range, WrenchStamped)}
"""Types of messages that are drawn, by their names."""

_PERIOD = 3  # frames between two checks for messages
_LOOK = 30  # frames between two searches for topics
_RAY, _POINT, _FORCE = (255, 120, 60), (255, 80, 40), (230, 40, 160)  # colours
_POINT_SIZE = 0.02  # m
_METRES_PER_NEWTON = 1.0
_MOST_POINTS = 20_000  # of one cloud; larger ones are thinned out


class SensorDrawings:
    """Draws sensor readings of one drone; subscribes to them only while they are shown."""

    def __init__(self, server: viser.ViserServer, follower: Follower) -> None:
        self._server, self._follower = server, follower
        self._inbox = Inbox(follower)
        self._wanted: object = None
        self._drawn: dict[str, Any] = {}
        self._count = 0

    def show(self, frame: Frame, drone: str, names: frozenset[str]) -> None:
        """Draw the readings that have arrived from a drone's sensors.

        Args:
            frame: The drones.
            drone: Name of the drone.
            names: Topics to draw, by their names below the drone's, such as `scan`.
        """
        self._count += 1
        wanted = drone, names, bool(names and self._server.get_clients())
        if wanted != self._wanted or self._count % _LOOK == 1:
            self._wanted = wanted
            self._listen(drone, names if wanted[-1] else frozenset())
        if self._count % _PERIOD:
            return
        for topic in self._inbox.topics:
            if (message := self._inbox.take(topic)) is not None:
                self._draw(topic, message, frame)

    def _listen(self, drone: str, names: frozenset[str]) -> None:
        """Subscribe to those of these topics of a drone that exist."""
        topics = self._follower.topics_of(drone) if names else {}
        wanted = {
            self._follower.topic(f"{drone}/{name}"): KINDS[kind]
            for name, kind in topics.items()
            if name in names and kind in KINDS
        }
        for topic in self._inbox.topics.keys() - wanted.keys():
            if topic in self._drawn:
                self._drawn.pop(topic).remove()
        self._inbox.subscribe(wanted)

    def _draw(self, topic: str, message: Any, frame: Frame) -> None:
        pose = self._pose_of(message.header.frame_id, frame)
        if pose is None:
            return
        name, scene = f"/sensors{topic}", self._server.scene
        match message:
            case LaserScan() | PointCloud2():
                is_scan = isinstance(message, LaserScan)
                points = scan_points(message) if is_scan else cloud_points(message)
                self._drawn[topic] = scene.add_point_cloud(
                    name, _placed(points, *pose), _POINT, point_size=_POINT_SIZE
                )
            case Range():
                reach = message.range if np.isfinite(message.range) else message.max_range
                ray = _placed(np.array([[0, 0, 0], [reach, 0, 0]], float), *pose)
                self._drawn[topic] = scene.add_line_segments(
                    name, ray[None], _RAY, thickness=1.5, thickness_units="screen"
                )
            case WrenchStamped():
                arrow = np.array([np.zeros(3), xyz(message.wrench.force)]) * _METRES_PER_NEWTON
                self._drawn[topic] = scene.add_arrows(
                    name,
                    _placed(arrow, *pose)[None],
                    _FORCE,
                    shaft_radius=0.004,
                    head_radius=0.01,
                    head_length=0.02,
                    visible=bool(np.any(arrow)),
                )

    def _pose_of(self, name: str, frame: Frame) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the pose of a TF frame in the world; None if unknown."""
        position, attitude = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        for _ in range(len(self._follower.frames) + 1):  # bounded, in case frames form a loop
            drone, _, link = name.partition("/")
            if link == "base_link" and drone in frame.names:
                row = frame.names.index(drone)
                position = frame.position[row] + body_to_world(frame.attitude[row], position)
                return position, multiply(frame.attitude[row], attitude)
            if name not in self._follower.frames:
                break
            name, above, turn = self._follower.frames[name]
            position, attitude = above + body_to_world(turn, position), multiply(turn, attitude)
        return (position, attitude) if name == "map" else None


def _placed(points: np.ndarray, position: np.ndarray, attitude: np.ndarray) -> np.ndarray:
    """Transform points (n, 3) of a frame to the world."""
    return (position + body_to_world(attitude, points)).astype(np.float32)


def scan_points(message: LaserScan) -> np.ndarray:
    """Return the points that a scan hits [m] in its frame, shape (n, 3)."""
    ranges = np.asarray(message.ranges, float)
    angles = message.angle_min + message.angle_increment * np.arange(len(ranges))
    hit = np.isfinite(ranges)
    ends = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=-1)
    return ranges[hit, None] * ends[hit]


def cloud_points(message: PointCloud2) -> np.ndarray:
    """Return the points of a cloud [m] in its frame, thinned out if they are many, (n, 3)."""
    offsets = {field.name: field.offset for field in message.fields}
    order = ">f4" if message.is_bigendian else "<f4"
    layout = np.dtype(
        {
            "names": ["x", "y", "z"],
            "formats": [order] * 3,
            "offsets": [offsets[axis] for axis in "xyz"],
            "itemsize": message.point_step,
        }
    )
    rows = np.frombuffer(message.data, layout)
    points = np.stack([rows[axis] for axis in "xyz"], axis=-1).astype(float)
    points = points[np.isfinite(points).all(axis=1)]
    return points[:: len(points) // _MOST_POINTS + 1]
