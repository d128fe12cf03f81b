"""Trajectories that other people's programs find in a recording, for `test_slam.py`.

A process of its own, in a Python that has kiss-icp, open3d, mcap-ros2-support and SciPy:

    python slam_judges.py kiss_icp|open3d|points flight.mcap

It prints the length of the flight, and the root mean square and the largest distance from the truth
[m], after the trajectory has been moved as a whole to where it fits best, as is usual (ATE). For
`points` it prints the number of points of the depth camera, and the same of their distances from
those that Open3D computes from the depth images.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from mcap_ros2.reader import read_ros2_messages
from scipy.spatial.transform import Rotation, Slerp

SCAN = 0.1  # s: KISS-ICP's poses are those at the end of a scan
START = 1.5  # s: before, the drone is so low that the lidar is too near to see the floor


def messages(path: str, *topics: str) -> Iterator[tuple[str, Any]]:
    for message in read_ros2_messages(path, topics=[f"/cf0/{topic}" for topic in topics]):
        yield message.channel.topic.removeprefix("/cf0/"), message.ros_msg


def seconds(message: Any) -> float:
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9


def transform(place: Any, turn: Any) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat([turn.x, turn.y, turn.z, turn.w]).as_matrix()
    matrix[:3, 3] = place.x, place.y, place.z
    return matrix


class Truth:
    """Where a frame of the drone was."""

    def __init__(self, path: str, frame: str) -> None:
        poses = {seconds(m): m.pose.pose for _, m in messages(path, "odom")}
        self._times = np.array(sorted(poses))
        matrices = [transform(poses[t].position, poses[t].orientation) for t in self._times]
        self._places = np.array([matrix[:3, 3] for matrix in matrices])
        turns = Rotation.from_matrix([matrix[:3, :3] for matrix in matrices])
        self._turns, self._mount = Slerp(self._times, turns), np.eye(4)
        parents = {
            edge.child_frame_id: edge
            for message in read_ros2_messages(path, topics=["/tf_static"])
            for edge in message.ros_msg.transforms
        }
        while frame != "cf0/base_link":
            edge = parents[frame].transform
            self._mount = transform(edge.translation, edge.rotation) @ self._mount
            frame = parents[frame].header.frame_id

    def at(self, time: float) -> np.ndarray:
        time = min(time, self._times[-1])
        matrix = np.eye(4)
        matrix[:3, :3] = self._turns(time).as_matrix()
        matrix[:3, 3] = [np.interp(time, self._times, column) for column in self._places.T]
        return (matrix @ self._mount)[:3, 3]


def kiss_icp(path: str) -> tuple[str, list[float], list[np.ndarray]]:
    """KISS-ICP, with thresholds for a room instead of a road."""
    from kiss_icp.config import load_config
    from kiss_icp.kiss_icp import KissICP
    from kiss_icp.tools.point_cloud2 import read_point_cloud

    config = load_config(None)
    config.data.max_range, config.data.min_range = 8.0, 0.3
    config.mapping.voxel_size = 0.2
    config.adaptive_threshold.initial_threshold = 0.2
    config.adaptive_threshold.min_motion_th = 0.05
    odometry, times, poses, frame = KissICP(config), [], [], ""
    names = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")
    codes = {name.upper(): code for code, name in enumerate(names, 1)}  # it looks for these
    for _, cloud in messages(path, "points"):
        if seconds(cloud) < START:
            continue
        own = {"name", "offset", "datatype", "count"}
        fields = [SimpleNamespace(**codes, **{n: getattr(f, n) for n in own}) for f in cloud.fields]
        sizes = {n: getattr(cloud, n) for n in ("width", "height", "point_step", "is_bigendian")}
        points, offsets = read_point_cloud(SimpleNamespace(fields=fields, data=cloud.data, **sizes))
        odometry.register_frame(points, offsets / offsets.max())
        times.append(seconds(cloud) + SCAN)
        poses.append(odometry.last_pose[:3, 3].copy())
        frame = cloud.header.frame_id
    return frame, times, poses


def open3d(path: str) -> tuple[str, list[float], list[np.ndarray]]:
    """Open3D's RGB-D odometry from picture to picture."""
    import open3d as o3d

    geometry, odometry = o3d.geometry, o3d.pipelines.odometry
    method = odometry.RGBDOdometryJacobianFromHybridTerm()
    found: dict[float, dict[str, Any]] = {}
    topics = [f"camera/{name}" for name in ("image_raw", "depth/image_raw", "depth/camera_info")]
    for topic, message in messages(path, *topics):
        found.setdefault(seconds(message), {})[topic] = message
    times, poses, frame, before = [], [], "", None
    pose, step = np.eye(4), np.eye(4)
    for time in sorted(t for t, one in found.items() if len(one) == 3):
        picture, image, info = (found[time][topic] for topic in topics)
        color = np.frombuffer(picture.data, np.uint8).reshape(picture.height, picture.width, 3)
        depth = np.frombuffer(image.data, "<f4").reshape(image.height, image.width)
        now = geometry.RGBDImage.create_from_color_and_depth(
            geometry.Image(color.copy()),
            geometry.Image(np.where(np.isfinite(depth), depth, 0.0).astype(np.float32)),
            depth_scale=1.0,
            depth_trunc=8.0,
        )
        if before is not None:
            lens = o3d.camera.PinholeCameraIntrinsic(
                info.width, info.height, info.k[0], info.k[4], info.k[2], info.k[5]
            )
            is_found, step, _ = odometry.compute_rgbd_odometry(now, before, lens, step, method)
            assert is_found, f"nothing found at {time} s"
            pose = pose @ step
        before, frame = now, info.header.frame_id
        times.append(time)
        poses.append(pose[:3, 3].copy())
    return frame, times, poses


def compare_points(path: str) -> None:
    import open3d as o3d

    topics = [f"camera/{name}" for name in ("points", "depth/image_raw", "depth/camera_info")]
    found: dict[float, dict[str, Any]] = {}
    for topic, message in messages(path, *topics):
        found.setdefault(seconds(message), {})[topic] = message
    errors = []
    for time in sorted(t for t, one in found.items() if len(one) == 3)[::20]:
        cloud, image, info = (found[time][topic] for topic in topics)
        raw = np.frombuffer(bytes(cloud.data), np.uint8).reshape(-1, cloud.point_step)
        own = raw[:, :12].copy().view("<f4")
        depth = np.frombuffer(image.data, "<f4").reshape(image.height, image.width)
        lens = o3d.camera.PinholeCameraIntrinsic(
            info.width, info.height, info.k[0], info.k[4], info.k[2], info.k[5]
        )
        there = np.where(np.isfinite(depth), depth, 0.0).astype(np.float32)
        theirs = o3d.geometry.PointCloud.create_from_depth_image(
            o3d.geometry.Image(there), lens, depth_scale=1.0, depth_trunc=1e9
        )
        own = own[np.isfinite(own).all(axis=1)]
        errors.append(np.linalg.norm(own - np.asarray(theirs.points), axis=1))
    away = np.concatenate(errors)
    print(f"{len(away)} {np.sqrt(np.mean(away**2)):.9f} {away.max():.9f}")


def main(judge: str, path: str) -> None:
    if judge == "points":
        compare_points(path)
        return
    frame, times, poses = {"kiss_icp": kiss_icp, "open3d": open3d}[judge](path)
    truth = Truth(path, frame)
    expected, told = np.array([truth.at(time) for time in times]), np.array(poses)
    turn, _ = Rotation.align_vectors(expected - expected.mean(axis=0), told - told.mean(axis=0))
    errors = np.linalg.norm(
        turn.apply(told - told.mean(axis=0)) + expected.mean(axis=0) - expected, axis=1
    )
    length = np.linalg.norm(np.diff(expected, axis=0), axis=1).sum()
    print(f"{length:.3f} {np.sqrt(np.mean(errors**2)):.4f} {errors.max():.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
