"""What programs for SLAM and navigation require of topics, each requirement with its source.

Sources are those of September 2026: LIO-SAM master 0be1fbe (its branch ros2 has the same), FAST_LIO
main 7cc4175, robot_localization 1cb9533, imu_tools 4b8d5db, slam_toolbox a3442d2, image_pipeline
30b982a, image_common f6e4ab6, vision_opencv 8b42d66, rtabmap_ros aec4f91, navigation2 main.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from geometry_msgs.msg import PoseWithCovarianceStamped, Twist, TwistStamped, Vector3
from nav_msgs.msg import Odometry
from ros_client import FREQ, LATCHED, Client, SimulatorProcess, own_domain, time_ns
from sensor_msgs.msg import (
    CameraInfo,
    Image,
    Imu,
    LaserScan,
    MagneticField,
    PointCloud2,
    PointField,
)
from sensor_msgs.msg import Range as RangeMessage
from tf2_msgs.msg import TFMessage

DOMAIN = own_domain("test_slam_readers")
SENSORS = """
all:
  velodyne: {type: vlp16, samples: 180, min_distance: 0.1}
  ouster: {type: os1, samples: 128, elevations: [20, 0, -20]}
  livox: {type: mid360, points: 20000}
  scan: {type: lidar, samples: 180}
  imu: {type: imu, rate: 250, attitude: {std: 0.01}}
  exact: {type: imu, rate: 100, gyro: {}, accelerometer: {}, attitude: {}}
  mag: {type: magnetometer}
  mocap: {type: motion_capture}
  rgbd: {type: camera, width: 32, height: 24, data_types: [rgb, depth]}
  pair: {type: camera, width: 32, height: 24, data_types: [rgb], baseline: 0.05}
"""
KINDS: dict[str, Any] = {
    **dict.fromkeys(("velodyne", "ouster", "livox", "rgbd/points"), PointCloud2),
    **dict.fromkeys(("imu/data", "imu/data_raw", "exact/data", "imu"), Imu),
    **dict.fromkeys(
        ("rgbd/image_raw", "rgbd/depth/image_raw", "pair/left/image_raw", "pair/right/image_raw"),
        Image,
    ),
    **dict.fromkeys(
        (
            "rgbd/camera_info", "rgbd/depth/camera_info",
            "pair/left/camera_info", "pair/right/camera_info",
        ),
        CameraInfo,
    ),
    "scan": LaserScan, "mag": MagneticField, "odom": Odometry, "range": RangeMessage,
    "mocap/with_covariance": PoseWithCovarianceStamped,
}  # fmt: skip
U8, U16, U32, F32 = PointField.UINT8, PointField.UINT16, PointField.UINT32, PointField.FLOAT32

Heard = dict[str, list[Any]]


class Rule(NamedTuple):
    """A requirement of a program."""

    reader: str
    source: str
    holds: Callable[[Heard], object]


def fields(message: PointCloud2) -> dict[str, int]:
    """PCL matches fields by name, datatype and count (pcl/conversions.h, FieldMatches)."""
    return {f.name: f.datatype for f in message.fields if f.count == 1}


def column(message: PointCloud2, name: str, kind: str) -> np.ndarray:
    (field,) = (f for f in message.fields if f.name == name)
    raw = np.frombuffer(bytes(message.data), np.uint8).reshape(-1, message.point_step)
    size = np.dtype(kind).itemsize
    return raw[:, field.offset : field.offset + size].copy().view(kind)[:, 0]


def has(topic: str, **kinds: int) -> Callable[[Heard], bool]:
    wanted = dict.fromkeys("xyz", F32) | kinds
    return lambda heard: all(wanted.items() <= fields(m).items() for m in heard[topic])


def every(topic: str, holds: Callable[[Any], object]) -> Callable[[Heard], bool]:
    return lambda heard: all(holds(message) for message in heard[topic])


def is_unit(quat: Any) -> bool:
    return math.isclose(quat.x**2 + quat.y**2 + quat.z**2 + quat.w**2, 1.0, rel_tol=1e-9)


def has_positive_variances(*covariances: Any) -> bool:
    return all(
        (np.linalg.eigvalsh(np.reshape(c, (round(len(c) ** 0.5), -1))) > 0).all()
        for c in covariances
    )


def is_covered(heard: Heard) -> bool:
    """Whether IMU readings surround a scan, as the next one is taken."""
    imu = [time_ns(m.header.stamp) for m in heard["imu/data"]]
    scan = heard["velodyne"][-2]
    start = time_ns(scan.header.stamp)
    end = start + column(scan, "time", "<f4")[-1] * 1e9
    return imu[0] <= start and end <= imu[-1] and max(np.diff(imu)) <= 10_000_000


def same_moment(*topics: str) -> Callable[[Heard], bool]:
    """All have the stamps of the first and its frame, as synchronizers and models want it."""

    def holds(heard: Heard) -> bool:
        headers = [{(time_ns(m.header.stamp), m.header.frame_id) for m in heard[t]} for t in topics]
        times = [{time for time, _ in one} for one in headers]
        start, end = max(map(min, times)), min(map(max, times))
        shown = [{one for one in header if start <= one[0] <= end} for header in headers]
        return end > start and all(one == shown[0] for one in shown)

    return holds


def cut_scan(scan: LaserScan) -> bool:
    span = scan.angle_max - scan.angle_min
    return round(span / scan.angle_increment) + 1 == len(scan.ranges) and span < 2 * math.pi


RULES = (
    Rule("LIO-SAM", "imageProjection.cpp:3-15", has("velodyne", intensity=F32, ring=U16, time=F32)),
    Rule(
        "LIO-SAM", "imageProjection.cpp:17-31",
        has("ouster", intensity=F32, t=U32, reflectivity=U16, ring=U8, range=U32),
    ),
    Rule("LIO-SAM", "imageProjection.cpp:241 is_dense", every("velodyne", lambda m: m.is_dense)),
    Rule("LIO-SAM", "imageProjection.cpp:241 is_dense", every("ouster", lambda m: m.is_dense)),
    Rule(
        "LIO-SAM", "imageProjection.cpp:238: the stamp begins a scan, the last point ends it",
        every(
            "velodyne",
            lambda m: (np.diff(column(m, "time", "<f4")) >= 0).all()
            and 0.08 < column(m, "time", "<f4")[-1] < 0.1,
        ),
    ),
    Rule("LIO-SAM", "imageProjection.cpp:291: IMU data before and after a scan", is_covered),
    Rule(
        "LIO-SAM", "imageProjection.cpp:541: rings are numbers of rows below N_SCAN",
        every("velodyne", lambda m: set(column(m, "ring", "<u2")) <= set(range(16))),
    ),
    Rule("LIO-SAM", "utility.h:275: a 9-axis IMU", every(
        "imu/data", lambda m: is_unit(m.orientation))),
    Rule("FAST-LIO", "preprocess.h:41-57", has("velodyne", intensity=F32, time=F32, ring=U16)),
    Rule(
        "FAST-LIO", "preprocess.h:59-84",
        has("ouster", intensity=F32, t=U32, reflectivity=U16, ring=U8, ambient=U16, range=U32),
    ),
    Rule(
        "FAST-LIO", "preprocess.cpp velodyne_handler: times are given if the last one is positive",
        every("velodyne", lambda m: column(m, "time", "<f4")[-1] > 0),
    ),
    Rule(
        "FAST-LIO", "preprocess.cpp mid360_handler (branch ROS2): line below N_SCANS, 4",
        every("livox", lambda m: set(column(m, "line", "u1")) == {0, 1, 2, 3}),
    ),
    Rule("depth_image_proc", "point_cloud_xyz.cpp:116", every(
        "rgbd/depth/image_raw", lambda m: m.encoding == "32FC1" and m.step == 4 * m.width)),
    Rule(
        "depth_image_proc", "point_cloud_xyzrgb.cpp:149, 209: one frame, rgb8",
        same_moment("rgbd/image_raw", "rgbd/depth/image_raw", "rgbd/camera_info", "rgbd/points"),
    ),
    Rule("depth_image_proc", "point_cloud_xyzrgb.cpp:209", every(
        "rgbd/image_raw", lambda m: m.encoding == "rgb8")),
    Rule(
        "image_transport", "camera_common.cpp:56: camera_info beside the picture",
        same_moment("rgbd/depth/image_raw", "rgbd/depth/camera_info"),
    ),
    Rule(
        "image_geometry", "pinhole_camera_model.cpp:151-176: a known model, K and P",
        every("rgbd/depth/camera_info", lambda m: m.distortion_model in (
            "plumb_bob", "rational_polynomial", "equidistant") and m.p[0] > 0 and m.k[8] == 1.0
            and m.binning_x <= 1 and m.roi.width in (0, m.width)),
    ),
    Rule(
        "image_geometry", "stereo_camera_model.cpp:37: one frame; both pictures at once",
        same_moment("pair/left/camera_info", "pair/right/camera_info", "pair/left/image_raw",
                    "pair/right/image_raw"),
    ),
    Rule(
        "image_geometry", "stereo_camera_model.cpp:38-40: equal focal lengths and rows",
        lambda heard: [heard["pair/left/camera_info"][-1].p[i] for i in (0, 5, 6)]
        == [heard["pair/right/camera_info"][-1].p[i] for i in (0, 5, 6)],
    ),
    Rule(
        "RTAB-Map", "MsgConversion.cpp:414-424: encodings",
        lambda heard: heard["rgbd/image_raw"][-1].encoding == "rgb8"
        and heard["rgbd/depth/image_raw"][-1].encoding == "32FC1",
    ),
    Rule(
        "RTAB-Map", "MsgConversion.cpp:325-343: rgb8 pairs, baseline = -P(0,3)/P(0,0)",
        lambda heard: heard["pair/right/image_raw"][-1].encoding == "rgb8"
        and math.isclose(-heard["pair/right/camera_info"][-1].p[3]
                         / heard["pair/right/camera_info"][-1].p[0], 0.05),
    ),
    Rule(
        "robot_localization", "ros_filter.cpp:2579: a variance of zero is a defect of its origin",
        every("odom", lambda m: has_positive_variances(m.pose.covariance, m.twist.covariance)),
    ),
    *(
        Rule("robot_localization", f"ros_filter.cpp:2579 of {topic}", every(
            topic, lambda m: has_positive_variances(
                m.orientation_covariance, m.angular_velocity_covariance,
                m.linear_acceleration_covariance)))
        for topic in ("imu", "imu/data", "exact/data")
    ),
    Rule("robot_localization", "ros_filter.cpp:3000", every(
        "mocap/with_covariance", lambda m: has_positive_variances(m.pose.covariance))),
    Rule(
        "robot_localization", "ros_filter.cpp:553: -1 where there is no orientation",
        every("imu/data_raw", lambda m: m.orientation_covariance[0] == -1.0),
    ),
    Rule("robot_localization", "ros_filter.cpp:2843: a child frame", every(
        "odom", lambda m: m.header.frame_id == "cf0/odom" and m.child_frame_id == "cf0/base_link")),
    Rule(
        "imu_filter_madgwick", "imu_filter_ros.cpp:230-257: finite fields, stamps of both",
        lambda heard: {time_ns(m.header.stamp) for m in heard["mag"]}
        & {time_ns(m.header.stamp) for m in heard["imu/data_raw"]}
        and all(math.isfinite(m.magnetic_field.x) for m in heard["mag"]),
    ),
    Rule("slam_toolbox", "laser_utils.cpp:117, Karto.h:4300: as many ranges as angles say", every(
        "scan", cut_scan)),
    Rule(
        "slam_toolbox", "laser_utils.cpp:103: limits",
        every("scan", lambda m: 0 <= m.range_min < m.range_max < math.inf),
    ),
    Rule(
        "Nav2", "obstacle_layer.cpp laserScanValidInfCallback: nothing is +inf (REP 117)",
        every("scan", lambda m: all(m.range_min <= r <= m.range_max or r == math.inf
                                    for r in m.ranges)),
    ),
    Rule("Nav2", "obstacle_layer.cpp updateBounds: x, y, z", has("rgbd/points")),
    Rule(
        "Nav2", "range_sensor_layer.cpp processVariableRangeMsg: a cone and two limits",
        every("range", lambda m: m.field_of_view > 0 and m.min_range < m.max_range),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heard]:
    """Two seconds of flight in the room."""
    folder: Path = tmp_path_factory.mktemp("slam_readers")
    (folder / "sensors.yaml").write_text(SENSORS)
    arguments = [f"sensors:={folder / 'sensors.yaml'}", "scene:=room", "start_paused:=true"]
    with SimulatorProcess(DOMAIN, [*arguments, "initial_poses:=[1.9, 0.0, 0.0, 0.5]"]) as simulator:
        client = Client(DOMAIN)
        messages = {topic: client.collect(kind, f"cf0/{topic}") for topic, kind in KINDS.items()}
        messages["/tf_static"] = client.collect(TFMessage, "/tf_static", LATCHED)
        messages["/tf"] = client.collect(TFMessage, "/tf")
        client.until(lambda: client.advance(FREQ // 10) and all(messages.values()), "messages")
        for one in messages.values():
            if one is not messages["/tf_static"]:
                one.clear()
        for _ in range(20):
            twist = Twist(linear=Vector3(z=0.3), angular=Vector3(z=1.0))
            client.publish("cf0/cmd_vel", TwistStamped(twist=twist))
            tick = client.advance(FREQ // 10)
        ends = (tick - FREQ // 5) * 1_000_000_000 // FREQ
        for topic in KINDS:
            client.until(lambda t=topic: time_ns(messages[t][-1].header.stamp) >= ends, topic)
        yield messages
        client.close()
        assert simulator.end()[0] == 0
        assert "WARN" not in simulator.log and "ERROR" not in simulator.log


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.reader} {rule.source}")
def test_what_readers_require_holds(heard: Heard, rule: Rule) -> None:
    assert rule.holds(heard)


def test_all_frames_are_in_one_tree(heard: Heard) -> None:
    """tf2's MessageFilter, in front of all of them, drops what it cannot transform."""
    edges = [t for m in heard["/tf_static"] + heard["/tf"] for t in m.transforms]
    parents = {edge.child_frame_id: edge.header.frame_id for edge in edges}
    for topic in KINDS:
        frame = heard[topic][-1].header.frame_id
        while frame != "map":
            assert frame in parents, (topic, frame)
            frame = parents[frame]
