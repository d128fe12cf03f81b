"""What is in the messages of sensors, without a node."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from sensor_msgs.msg import FluidPressure, Imu, MagneticField, NavSatFix, Range
from visualization_msgs.msg import Marker

from crazyflow_ros.ros.sensors import lidar_and_camera_messages
from crazyflow_ros.ros.sensors.device_topics import marker_array
from crazyflow_ros.ros.sensors.sensors_file import load
from crazyflow_ros.sensors import Intrinsics, ShapeRecorder
from crazyflow_ros.sensors.camera_model import Distortion
from crazyflow_ros.sensors.ranger import RangerData


@pytest.mark.parametrize(("rate", "seconds"), [(50, 0.5), (4, 0.5), (3, 2 / 3), (1, 2.0)])
def test_markers_stay_until_others_come(rate: int, seconds: float) -> None:
    shapes = ShapeRecorder(mujoco.MjModel.from_xml_string("<mujoco/>"))
    shapes.add_arrow(np.zeros(3), np.ones(3), (1, 0, 0, 1), 0.1)
    hits, rays = marker_array(shapes, 1_500_000_000, rate).markers
    for marker in (hits, rays):
        assert marker.lifetime.sec + marker.lifetime.nanosec * 1e-9 == pytest.approx(seconds)
        assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (1, 500_000_000)
    assert (hits.action, rays.action) == (Marker.DELETE, Marker.ADD)  # nothing was hit
    assert hits.id != rays.id and [p.x for p in rays.points] == [0.0, 1.0]


def test_intrinsics_of_a_camera() -> None:
    """As image_geometry reads them: a rectified pinhole, and the lens before it."""
    lens = Intrinsics.from_fovy(60.0, 320, 240)
    info = lidar_and_camera_messages.camera_info(lens, Distortion())
    focal = 120 / math.tan(math.radians(30.0))
    matrix = np.array([[focal, 0, 159.5], [0, focal, 119.5], [0, 0, 1]])
    assert (info.width, info.height, info.distortion_model) == (320, 240, "plumb_bob")
    np.testing.assert_allclose(info.k.reshape(3, 3), matrix)
    np.testing.assert_allclose(info.p.reshape(3, 4), np.column_stack([matrix, np.zeros(3)]))
    np.testing.assert_array_equal(info.r.reshape(3, 3), np.eye(3))
    assert list(info.d) == [0.0] * 5
    fisheye = Distortion("equidistant", (0.1, -0.02, 0.003, -4e-4))
    info = lidar_and_camera_messages.camera_info(lens, fisheye)
    assert (info.distortion_model, tuple(info.d)) == tuple(fisheye)
    info = lidar_and_camera_messages.camera_info(
        lens, Distortion("plumb_bob", (0.1, 0.2, 0.3, 0.4))
    )
    assert list(info.d) == [0.1, 0.2, 0.3, 0.4, 0.0]
    assert (info.binning_x, info.roi.width, info.roi.do_rectify) == (0, 0, False)


def test_fields_of_a_scan() -> None:
    angles = np.radians([-90.0, 0.0, 90.0, 180.0])
    ranges = np.array([1.5, np.inf, -np.inf, 7.0])
    scan = lidar_and_camera_messages.laser_scan(angles, ranges, (0.1, 8.0), 20)
    told = scan.angle_min, scan.angle_max, scan.angle_increment
    np.testing.assert_allclose(told, [-math.pi / 2, math.pi, math.pi / 2], rtol=1e-6)
    assert list(scan.ranges) == ranges.tolist() and len(scan.intensities) == 0
    np.testing.assert_allclose([scan.range_min, scan.range_max], [0.1, 8.0], rtol=1e-6)
    assert scan.time_increment == 0.0 and scan.scan_time == pytest.approx(0.05)


def test_queues_hold_all_that_is_small_and_little_that_is_large(tmp_path: Path) -> None:
    (file := tmp_path / "s.yaml").write_text(
        "all: {eye: {type: camera, width: 640, height: 480, data_types: [rgb, depth]}, "
        "points: {type: os1}, info: {type: camera, data_types: [rgb], baseline: 0.1}}"
    )
    depths = {
        f"{device.name}{topic.suffix}": topic.qos.depth
        for device in load(str(file), ["cf0"], "cf2x_L250").devices
        for topic in device.topics
    }
    large = {"eye/image_raw": 72, "eye/depth/image_raw": 54, "eye/points": 6, "points": 21}
    small = ("eye/camera_info", "eye/depth/camera_info", "info/right/image_raw")
    assert large.items() | dict.fromkeys(small, 100).items() <= depths.items()


def test_covariances_are_the_variances_of_the_noise(tmp_path: Path) -> None:
    """At the rate of the sensor, as density and deviation add up."""
    (file := tmp_path / "s.yaml").write_text("""
all:
  imu: {type: imu, rate: 50, gyro: {density: [1, 2, 3]}, accelerometer: {std: 2, density: 0.1}}
  gnss: {type: gnss, rate: 4, latitude: 1, longitude: 2,
         noise: {std: [1, 2, 3], density: 2, bias: 9}}
  mag: {type: magnetometer, noise: {std: [1, 2, 3]}}
  exact: {type: imu, gyro: {}, accelerometer: {}, attitude: {}}
  baro: {type: barometer, noise: {std: 3}}
""")
    told: dict[str, Any] = {}
    for device in load(str(file), ["cf0"], "cf2x_L250").devices:
        message = device.kind.messages(device)[-1]
        told[device.name] = message.template("cf0")
    imu, fix, field, exact = told["imu"], told["gnss"], told["mag"], told["exact"]
    assert isinstance(imu, Imu) and isinstance(fix, NavSatFix) and isinstance(field, MagneticField)
    for covariance, variances in (
        (imu.angular_velocity_covariance, [50, 200, 450]),
        (imu.linear_acceleration_covariance, [4.5] * 3),
        (fix.position_covariance, [17, 20, 25]),  # 4 Hz: 1 + 4 * 4; a bias is no white noise
        (field.magnetic_field_covariance, [1, 4, 9]),
        (exact.orientation_covariance, [1e-9] * 3),  # for zero would mean: unknown
        (exact.linear_acceleration_covariance, [1e-9] * 3),
    ):
        np.testing.assert_allclose(np.reshape(covariance, (3, 3)), np.diag(variances))
    assert fix.position_covariance_type == NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN
    assert (fix.status.status, fix.status.service) == (0, 1)  # a fix, of GPS
    assert isinstance(told["baro"], FluidPressure) and told["baro"].variance == 9.0


def test_the_variance_of_a_range_is_that_of_this_reading(tmp_path: Path) -> None:
    (file := tmp_path / "s.yaml").write_text("all: {range: {type: range, field_of_view: 0.2}}")
    (device,) = load(str(file), ["cf0"], "cf2x_L250").devices
    (message,) = device.kind.messages(device)
    template = message.template("cf0")
    assert isinstance(template, Range) and template.field_of_view == pytest.approx(0.2)
    data = RangerData(np.array([[1.0], [3.0]]), np.array([[6e-6], [2e-4]]))
    assert message.paths == [["range"], ["variance"]]
    np.testing.assert_array_equal(message.values(data), [data.ranges, data.variance])
