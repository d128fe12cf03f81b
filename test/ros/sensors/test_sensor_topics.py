"""All sensors of the node, from a second process, in a room of known size."""

from __future__ import annotations

import io
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import yaml
from geometry_msgs.msg import (
    PoseStamped,
    PoseWithCovarianceStamped,
    Twist,
    TwistStamped,
    Vector3,
    Wrench,
    WrenchStamped,
)
from nav_msgs.msg import Odometry
from paths import ROOT
from rclpy.qos import QoSReliabilityPolicy
from ros_client import FREQ, LATCHED, Client, numbers, own_domain, stamp_ns, time_ns
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import (
    BatteryState,
    CameraInfo,
    CompressedImage,
    FluidPressure,
    Image,
    Imu,
    LaserScan,
    MagneticField,
    NavSatFix,
    PointCloud2,
    Range,
)
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, SpawnEntity
from std_msgs.msg import Bool
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray
from wire import Wire

from crazyflow_ros.client import SimulationError
from crazyflow_ros.drones import load_drone
from crazyflow_ros.scene.frames import body_to_world, multiply, world_to_body
from crazyflow_ros.sim.actuation import Battery

DOMAIN = own_domain("test_ros_sensors")
ROOM = """
<mujoco>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="0 0 .1"/>
    <geom name="east" type="box" size=".5 4 4" pos="3.5 0 0" rgba="1 0 0 1"/>
    <geom name="west" type="box" size=".5 4 4" pos="-3.5 0 0"/>
    <geom name="north" type="box" size="4 .5 4" pos="0 2.5 0"/>
  </worldbody>
</mujoco>"""

SENSORS = """
all:
  scan: {type: lidar, rate: 10, samples: 72, max_distance: 6.0}
  imu: {type: imu, rate: 100, pos: [0.03, 0.01, 0], rpy: [0, 0, 90],
        gyro: {density: 1e-3}, accelerometer: {density: [0.01, 0.01, 0.02]}}
cf1:
  touch: {type: contact, rate: 10}
  wall: {type: contact, rate: 10, secondary: {mode: geom, pattern: east}}
cf0:
  cloud: {type: lidar, rate: 5, samples: 24, elevations: [-20, 0, 20], pos: [0, 0, 0.02],
          rpy: [5, 10, 90]}
  eye: {type: camera, rate: 5, width: 64, height: 48, data_types: [rgb, depth, segmentation]}
  ahrs: {type: imu, rate: 100, pos: [0, 0, 0.01], rpy: [0, 90, 0],
         attitude: {std: [0.01, 0.02, 0.05]}}
  drift: {type: imu, rate: 100, gyro: {bias: 1.0}, accelerometer: {}}
  mag: {type: magnetometer, rate: 10, field: [1e-6, 2e-5, -4e-5]}
  baro: {type: barometer, rate: 10, altitude: 500.0, noise: {std: 3.0}}
  gps: {type: gnss, rate: 10, latitude: 48.0, longitude: 11.0, altitude: 600.0}
  ring: {type: multiranger, rate: 10, noise: {}, field_of_view: 0, by_reflectance: false}
  down: {type: range, rate: 10, noise: {}, field_of_view: 0}
  close: {type: range, rate: 10, min_range: 3.0}
  height: {type: height, rate: 10}
  low: {type: height, rate: 10, max_distance: 0.5}
  ground: {type: grid, rate: 10, size: [0.4, 0.2], ray_alignment: yaw}
  rings: {type: ring, rate: 10, rings: [[0.1, 5]], pos: [0, 0, -0.01], rpy: [0, 20, 0]}
  deep: {type: pinhole, rate: 10, width: 8, height: 6, fovy: 60, rpy: [0, 20, 30]}
  nose: {type: pinhole, rate: 10}
  near: {type: lidar, rate: 10, samples: 36, min_distance: 2.6, noise: {std: 0.01}}
  vlp: {type: vlp16, samples: 9}
  hdl: {type: hdl32, samples: 9}
  ost: {type: os0, samples: 9}
  ouster: {type: os1, samples: 9}
  livox: {type: mid360, points: 2000}
  aside: {type: camera, rate: 5, width: 32, height: 24, fovy: 80, pos: [0.02, 0, 0.05],
          rpy: [0, 10, 90], data_types: [depth, normals, flow]}
  pair: {type: camera, rate: 5, width: 96, height: 72, data_types: [rgb], baseline: 0.1, fovy: 90}
  flow: {type: optical_flow, rate: 10}
  battery: {type: battery, rate: 10}
  track: {type: motion_capture, rate: 50, attitude: {std: [0.01, 0.02, 0.05]}}
  mocap: {type: motion_capture, rate: 50, delay: 0.04, dropout: 0.3, position: {std: 0.001}}
"""


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("sensors")
    for name, text in (("room.xml", ROOM), ("sensors.yaml", SENSORS)):
        (folder / name).write_text(text)
    files = [f"scene:={folder / 'room.xml'}", f"sensors:={folder / 'sensors.yaml'}"]
    poses = "initial_poses:=[0.4, -0.3, 1.5, 0.5, 0.0, -20.0, 0.1, 0.0]"
    settings = ["drones:=[cf0, cf1]", poses, "max_drones:=3"]
    return [*files, *settings, "start_paused:=true", "battery:=true"]


class Tick:
    """Messages of topics of cf0 at one tick, and where its frames are then."""

    def __init__(self, client: Client, topics: dict[str, Any]) -> None:
        self._static = client.collect(TFMessage, "/tf_static", LATCHED)
        kinds = {**topics, "odom": Odometry}
        lists = {name: client.collect(kind, f"cf0/{name}") for name, kind in kinds.items()}
        moving = client.collect(TFMessage, "/tf")
        self._advance(client, lists)  # until subscriptions are found and cameras are compiled
        client.reset()  # it falls, not for long
        push = Wrench(force=Vector3(x=0.05, y=0.02), torque=Vector3(x=1e-5, y=2e-5, z=1e-5))
        client.publish("cf0/wrench", WrenchStamped(wrench=push))
        self._advance(client, lists)
        assert self._is_complete(lists), f"only {sorted(self.messages)} of {sorted(lists)}"
        self._moving = client.until(lambda: self._transforms(moving), "transforms")

    def _advance(self, client: Client, lists: dict[str, list[Any]]) -> None:
        for _ in range(60):
            self.tick = client.advance(100) // 100 * 100  # all that has a period of 100 was due
            self.messages = self._at(lists)
            with suppress(SimulationError):
                client.until(lambda: self._is_complete(lists), "sensors", timeout=1.0)
                break

    def _at(self, lists: dict[str, list[Any]]) -> dict[str, Any]:
        stamp = stamp_ns(self.tick)
        return {
            name: message
            for name, messages in lists.items()
            for message in messages
            if time_ns(message.header.stamp) == stamp
        }

    def _is_complete(self, lists: dict[str, list[Any]]) -> bool:
        self.messages = self._at(lists)
        return len(self.messages) == len(lists)

    def _transforms(self, messages: list[Any]) -> Any:
        stamp = stamp_ns(self.tick)
        at = [m.transforms for m in messages if time_ns(m.transforms[0].header.stamp) == stamp]
        return at[-1] if at else None

    def __getitem__(self, topic: str) -> Any:
        return self.messages[topic]

    def into_map(self, frame: str) -> tuple[np.ndarray, np.ndarray]:
        """Position and attitude xyzw of a frame in the map, through TF."""
        parents = {t.child_frame_id: t for t in (*self._static[-1].transforms, *self._moving)}
        pos, quat = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        while frame != "map":
            step = parents[frame].transform
            turn = numbers(step.rotation)
            pos = numbers(step.translation) + body_to_world(turn, pos)
            quat = multiply(turn, quat)
            frame = parents[frame].header.frame_id
        return pos, quat

    def carried(self, topic: str, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) in the frame of a message, carried into the map."""
        pos, quat = self.into_map(self[topic].header.frame_id)
        return pos + body_to_world(quat, points)


def sensed(client: Client, **kinds: Any) -> Tick:
    return Tick(client, {name.replace("__", "/"): kind for name, kind in kinds.items()})


def to_room(points: np.ndarray) -> np.ndarray:
    """Distance of points (n, 3) from the nearest wall or the floor."""
    walls = [points[:, 0] - 3, points[:, 0] + 3, points[:, 1] - 2, points[:, 2]]
    return np.abs(walls).min(axis=0)


def distances(start: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """To the room along directions (..., 3) in the world; infinite through its open south."""
    found = np.full(directions.shape[:-1], np.inf)
    for axis, place, sign in ((0, 3.0, 1), (0, -3.0, -1), (1, 2.0, 1), (2, 0.0, -1)):
        toward = directions[..., axis] * sign > 1e-12
        reach = (place - start[axis]) / np.where(toward, directions[..., axis], np.nan)
        points = start + reach[..., None] * directions
        there = toward & (np.abs(points[..., :2]) < 4.0 + 1e-9).all(axis=-1) | (axis == 2) & toward
        found = np.where(there, np.fmin(found, reach), found)
    return found


def test_a_scan_of_a_known_room(client: Client) -> None:
    at = sensed(client, scan=LaserScan)
    scan = at["scan"]
    assert scan.header.frame_id == "cf0/base_link"
    angles = scan.angle_min + scan.angle_increment * np.arange(72)
    assert angles[-1] == pytest.approx(scan.angle_max, abs=1e-5)
    directions = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    pos, quat = at.into_map("cf0/base_link")
    expected = distances(pos, body_to_world(quat, directions))
    expected[expected > 6.0] = np.inf
    assert 0 < np.isinf(expected).sum() < 40
    np.testing.assert_allclose(scan.ranges, expected, rtol=1e-5)
    assert scan.range_max == 6.0 and scan.scan_time == pytest.approx(0.1)


def test_points_of_a_cloud_carried_through_tf_are_on_the_walls(client: Client) -> None:
    at = sensed(client, cloud=PointCloud2)
    cloud = at["cloud"]
    assert (cloud.height, cloud.width, cloud.is_dense) == (3, 24, False)
    assert cloud.header.frame_id == "cf0/cloud"
    points = np.frombuffer(cloud.data, "<f4").reshape(3, 24, 3).astype(float)
    seen = np.isfinite(points).all(axis=-1)
    assert to_room(at.carried("cloud", points[seen])).max() < 1e-6
    assert 30 < seen.sum() < 72


def test_clouds_of_other_patterns_carried_through_tf_are_on_the_walls(client: Client) -> None:
    shapes = {"ground": (3, 5), "rings": (1, 6), "deep": (6, 8), "nose": (12, 16)}
    at = sensed(client, **dict.fromkeys(shapes, PointCloud2))
    points = {}
    for name, shape in shapes.items():
        cloud = at[name]
        assert (cloud.height, cloud.width) == shape
        points[name] = np.frombuffer(cloud.data, "<f4").reshape(*shape, 3).astype(float)
        seen = np.isfinite(points[name]).all(axis=-1)
        assert seen.mean() > 0.4 and cloud.is_dense == seen.all()
        assert to_room(at.carried(name, points[name][seen])).max() < 1e-6, name
    assert at["nose"].header.frame_id == "cf0/fpv_camera_optical_frame"
    assert at["deep"].header.frame_id == "cf0/deep/optical_frame"
    x, y, z = np.moveaxis(points["deep"], -1, 0)
    focal = 3 / math.tan(math.radians(30.0))
    row, column = np.indices((6, 8))
    seen = np.isfinite(z)
    np.testing.assert_allclose((focal * x / z + 3.5)[seen], column[seen], atol=1e-4)
    np.testing.assert_allclose((focal * y / z + 2.5)[seen], row[seen], atol=1e-4)
    # Rays that keep level go straight down from a grid that has the heading of the drone.
    pos, quat = at.into_map("cf0/base_link")
    forward = body_to_world(quat, np.array([1.0, 0.0, 0.0]))
    ahead = forward[:2] / np.hypot(*forward[:2])
    left = np.array([-ahead[1], ahead[0]])
    y, x = np.meshgrid([-0.1, 0.0, 0.1], [-0.2, -0.1, 0.0, 0.1, 0.2], indexing="ij")
    expected = pos[:2] + x[..., None] * ahead + y[..., None] * left
    np.testing.assert_allclose(at.carried("ground", points["ground"])[..., :2], expected, atol=1e-6)
    assert body_to_world(quat, np.array([0.0, 0.0, 1.0]))[2] < 1.0 - 1e-5  # it is inclined


def test_what_is_too_near_is_negative_infinite(client: Client) -> None:
    at = sensed(client, near=LaserScan, close=Range, height=Range, low=Range)
    scan = at["near"]
    angles = scan.angle_min + scan.angle_increment * np.arange(36)
    directions = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    pos, quat = at.into_map("cf0/base_link")
    truth, told = distances(pos, body_to_world(quat, directions)), np.array(scan.ranges)
    too_near, seen = np.isneginf(told), np.isfinite(told)
    assert too_near.sum() > 5 and seen.sum() > 5
    assert truth[too_near].max() < 2.65 and told[seen].min() >= 2.6
    errors = told[seen] - truth[seen]
    assert 0.004 < errors.std() < 0.02 and np.abs(errors).max() < 0.05
    assert scan.range_min == pytest.approx(2.6) and scan.range_max == 10.0
    assert at["close"].range == -math.inf and at["close"].min_range == 3.0
    assert at["height"].range == pytest.approx(at.into_map("cf0/range_link")[0][2], abs=1e-6)
    assert at["height"].header.frame_id == "cf0/range_link"
    assert at["low"].range == math.inf and at["low"].max_range == 0.5


def test_a_camera_elsewhere_on_the_drone(client: Client) -> None:
    at = sensed(
        client, aside__depth__image_raw=Image, aside__camera_info=CameraInfo,
        eye__camera_info=CameraInfo, aside__normals__image_raw=Image, aside__flow__image_raw=Image,
    )  # fmt: skip
    info, picture = at["aside/camera_info"], at["aside/depth/image_raw"]
    assert info.header.frame_id == "cf0/aside/optical_frame"
    focal = 12 / math.tan(math.radians(40.0))
    assert info.k.tolist() == pytest.approx([focal, 0, 15.5, 0, focal, 11.5, 0, 0, 1])
    z = np.frombuffer(picture.data, "<f4").reshape(24, 32).astype(float)
    row, column = np.indices(z.shape)
    points = np.stack([(column - 15.5) / focal * z, (row - 11.5) / focal * z, z], axis=-1)
    seen = np.isfinite(z) & (z > 0.3)  # but the drone
    assert seen.mean() > 0.5
    assert np.median(to_room(at.carried("aside/depth/image_raw", points[seen]))) < 1e-3
    assert at["eye/camera_info"].k[0] != info.k[0]  # though the model has one camera for both
    normals, flow = (at[f"aside/{kind}/image_raw"] for kind in ("normals", "flow"))
    assert (normals.encoding, flow.encoding) == ("32FC3", "32FC2")
    assert (normals.step, flow.step) == (32 * 12, 32 * 8)
    facing = np.frombuffer(normals.data, "<f4").reshape(24, 32, 3)[seen]
    np.testing.assert_allclose(np.sort(abs(facing))[..., -1], 1.0, atol=1e-5)  # walls and floor
    moving = np.frombuffer(flow.data, "<f4").reshape(24, 32, 2)
    assert np.isfinite(moving).all() and abs(moving).max() > 1.0  # it falls


def test_points_of_a_depth_camera_are_those_of_depth_image_proc(client: Client) -> None:
    """Its arithmetic (point_cloud_xyzrgb.cpp, depth_conversions.hpp), layout and colours."""
    at = sensed(
        client, eye__points=PointCloud2, eye__depth__image_raw=Image, eye__image_raw=Image,
        eye__depth__camera_info=CameraInfo, aside__points=PointCloud2,
    )  # fmt: skip
    cloud, info = at["eye/points"], at["eye/depth/camera_info"]
    assert [(f.name, f.offset, f.datatype, f.count) for f in cloud.fields] == [
        ("x", 0, 7, 1), ("y", 4, 7, 1), ("z", 8, 7, 1), ("rgb", 16, 7, 1),
    ]  # fmt: skip
    assert (cloud.point_step, cloud.row_step, cloud.height, cloud.width) == (32, 64 * 32, 48, 64)
    assert cloud.header == at["eye/depth/image_raw"].header
    depth = np.frombuffer(at["eye/depth/image_raw"].data, "<f4").reshape(48, 64)
    rgb = np.frombuffer(at["eye/image_raw"].data, np.uint8).reshape(48, 64, 3)
    raw = np.frombuffer(cloud.data, np.uint8).reshape(48, 64, 32)
    own = raw[..., :12].copy().view("<f4")
    np.testing.assert_array_equal(raw[..., 16:19], rgb[..., ::-1])  # as pcl::PointXYZRGB: b, g, r
    fx, cx, fy, cy = info.k[0], info.k[2], info.k[4], info.k[5]
    for v, u in np.argwhere(np.isfinite(depth))[::7]:
        z = depth[v, u]
        expected = ((u - cx) * z / fx, (v - cy) * z / fy, z)
        np.testing.assert_allclose(own[v, u], expected, atol=1e-3)
    np.testing.assert_array_equal(np.isnan(own).all(axis=-1), ~np.isfinite(depth))
    assert cloud.is_dense == np.isfinite(depth).all()
    assert at["aside/points"].point_step == 16  # as it takes no colours


def test_the_right_camera_of_a_pair_is_a_baseline_away(client: Client) -> None:
    """What image_geometry computes of both camera_infos is where the edge of the wall shows."""
    at = sensed(
        client, pair__left__image_raw=Image, pair__left__camera_info=CameraInfo,
        pair__right__image_raw=Image, pair__right__camera_info=CameraInfo,
    )  # fmt: skip
    left, right = at["pair/left/camera_info"], at["pair/right/camera_info"]
    assert left.header == right.header == at["pair/right/image_raw"].header  # one frame
    assert left.p[3] == 0.0 and right.p[3] == pytest.approx(-0.1 * left.k[0])
    assert left.k[0] == pytest.approx(36.0)
    pos, quat = at.into_map(left.header.frame_id)
    seen = []
    for side, info in (("left", left), ("right", right)):
        pixels = np.frombuffer(at[f"pair/{side}/image_raw"].data, np.uint8).reshape(72, 96, 3)
        is_red = pixels[..., 0] > 2 * pixels[..., 1].astype(int)  # the east wall, to y = 2
        corner = world_to_body(quat, np.array([3.0, 2.0, pos[2]]) - pos)
        u = (np.reshape(info.p, (3, 4)) @ [*corner, 1.0])[:2]
        u = u / corner[2]
        row = is_red[round(u[1])]
        seen.append(int(np.flatnonzero(row)[0]))
        assert abs(seen[-1] - u[0]) < 1.5, (side, seen, u)
    assert 0.8 < seen[0] - seen[1] < 2.2  # f B / z: 36 * 0.1 / 2.6


def test_beams_carried_through_tf_end_at_the_walls(client: Client) -> None:
    beams = {f"ring__{name}": Range for name in ("front", "back", "left", "right", "up")}
    at = sensed(client, **beams, ring__scan=LaserScan, down=Range)
    ranges = {}
    for topic in [*(name.replace("__", "/") for name in beams), "down"]:
        message = at[topic]
        assert message.header.frame_id == f"cf0/{topic}" or topic == "down"
        assert message.max_range == 4.0 and message.min_range == pytest.approx(0.04)
        ranges[topic] = message.range
        if math.isfinite(message.range):
            point = at.carried(topic, np.array([message.range, 0.0, 0.0]))
            assert to_room(point[None])[0] < 1e-6, topic
    assert math.isinf(ranges["ring/up"]) and math.isfinite(ranges["down"])
    assert sum(map(math.isfinite, ranges.values())) >= 3
    scan = at["ring/scan"]
    around = [ranges[f"ring/{name}"] for name in ("back", "right", "front", "left")]
    assert list(scan.ranges) == around
    assert scan.angle_min + 3 * scan.angle_increment == pytest.approx(scan.angle_max)
    assert at["down"].header.frame_id == "cf0/range_link"


def test_the_imu_errs_as_much_as_its_covariances_say(client: Client) -> None:
    """Against the exact one, at another place on the drone and turned by a right angle."""
    at = sensed(client, imu=Imu, imu__data_raw=Imu)
    assert at["imu/data_raw"].header.frame_id == "cf0/imu"
    exact = client.collect(Imu, "cf0/imu")
    noisy = client.collect(Imu, "cf0/imu/data_raw")
    client.reset()
    ticks = [tick for _ in range(6) for tick in range(5 * (client.advance(100) // 5), 0, -5)[:20]]
    stamps = sorted({stamp_ns(tick) for tick in ticks})

    def by_stamp(messages: list[Any]) -> dict[int, Any]:
        return {time_ns(m.header.stamp): m for m in messages}

    client.until(
        lambda: all(set(stamps) <= by_stamp(one).keys() for one in (noisy, exact)), "readings"
    )
    truth, told = by_stamp(exact), by_stamp(noisy)
    turn = np.array([0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)])
    place = np.array([0.03, 0.01, 0.0])
    errors: dict[str, list[np.ndarray]] = {"gyro": [], "accelerometer": []}
    for stamp in stamps:
        rate = numbers(truth[stamp].angular_velocity)
        force = numbers(truth[stamp].linear_acceleration)
        force = force + np.cross(rate, np.cross(rate, place))  # it falls without a torque
        for kind, value, field in (
            ("gyro", rate, "angular_velocity"),
            ("accelerometer", force, "linear_acceleration"),
        ):
            errors[kind].append(numbers(getattr(told[stamp], field)) - world_to_body(turn, value))
    message = told[stamps[0]]
    for kind, covariance, density in (
        ("gyro", message.angular_velocity_covariance, [1e-3] * 3),
        ("accelerometer", message.linear_acceleration_covariance, [0.01, 0.01, 0.02]),
    ):
        variance = np.square(density) * 100  # Hz
        np.testing.assert_allclose(np.reshape(covariance, (3, 3)), np.diag(variance))
        spread = np.mean(np.square(errors[kind]), axis=0) / variance
        assert (np.abs(np.log(spread)) < 0.5).all(), (kind, spread)
    assert message.orientation_covariance[0] == -1.0


def test_attitudes_err_about_the_axes_of_the_map_as_covariances_say(client: Client) -> None:
    """Of an AHRS that looks up, and of motion capture, whose errors are about the drone's axes."""
    ahrs, poses = client.collect(Imu, "cf0/ahrs/data"), client.collect(Odometry, "cf0/odom")
    mocap = client.collect(PoseWithCovarianceStamped, "cf0/track/with_covariance")
    client.reset()
    client.until(lambda: client.advance(50) and len(ahrs) > 200 < len(mocap), "readings")
    truth = {time_ns(m.header.stamp): numbers(m.pose.pose.orientation) for m in poses}
    mount = Rotation.from_euler("y", 90, degrees=True)
    for messages, place, covariance in (
        (
            [(m.header.stamp, m.orientation) for m in ahrs], mount,
            np.reshape(ahrs[0].orientation_covariance, (3, 3)),
        ),
        (
            [(m.header.stamp, m.pose.pose.orientation) for m in mocap], Rotation.identity(),
            np.reshape(mocap[0].pose.covariance, (6, 6))[3:, 3:],
        ),
    ):  # fmt: skip
        errors = np.array([
            (
                Rotation.from_quat(numbers(quat))
                * (Rotation.from_quat(truth[time_ns(stamp)]) * place).inv()
            ).as_rotvec()
            for stamp, quat in messages
            if time_ns(stamp) in truth
        ])  # fmt: skip
        spread = np.mean(np.square(errors), axis=0) / np.diag(covariance)
        assert len(errors) > 80 and (np.abs(np.log(spread)) < 0.6).all(), spread
    assert ahrs[0].header.frame_id == "cf0/ahrs" and mocap[0].header.frame_id == "map"


def test_exact_steps_deliver_every_picture(client: Client) -> None:
    """With their calibration beside each, where image_transport looks for it."""
    names = ("eye/image_raw", "eye/camera_info", "eye/depth/image_raw", "eye/depth/camera_info")
    kinds = (Image, CameraInfo) * 2
    seen = {name: client.collect(kind, f"cf0/{name}") for name, kind in zip(names, kinds)}
    client.until(lambda: client.advance(FREQ // 5) and all(seen.values()), "pictures")
    start = client.advance(1)
    end = client.advance(5 * FREQ)  # s
    due = [stamp_ns(tick) for tick in range(start + 1, end + 1) if tick % (FREQ // 5) == 0]
    assert len(due) == 25
    for name, messages in seen.items():
        client.until(lambda told=messages: time_ns(told[-1].header.stamp) >= due[-1], name)
        stamps = [time_ns(message.header.stamp) for message in messages]
        assert [stamp for stamp in stamps if stamp >= due[0]] == due, name


def test_field_pressure_fix_and_flow_are_those_of_the_pose(client: Client) -> None:
    at = sensed(client, mag=MagneticField, baro=FluidPressure, gps=NavSatFix, flow=TwistStamped)
    pos, quat = at.into_map("cf0/base_link")
    assert {at[n].header.frame_id for n in ("mag", "baro", "gps", "flow")} == {"cf0/base_link"}
    field = world_to_body(quat, np.array([1e-6, 2e-5, -4e-5]))
    np.testing.assert_allclose(numbers(at["mag"].magnetic_field), field, rtol=1e-9, atol=1e-15)
    variance = np.reshape(at["mag"].magnetic_field_covariance, (3, 3))
    np.testing.assert_array_equal(variance, 1e-18 * np.eye(3))  # exact: zero would mean unknown
    pressure = 101325.0 * (1 - 0.0065 * (500.0 + pos[2]) / 288.15) ** 5.25588
    assert abs(at["baro"].fluid_pressure - pressure) < 5 * 3.0 and at["baro"].variance == 9.0
    fix = at["gps"]
    # Near the origin, a degree is a radius of curvature: WGS 84, 48 degrees north.
    assert math.radians(fix.latitude - 48.0) * 6_370_770 == pytest.approx(pos[1], abs=1e-3)
    east = math.radians(fix.longitude - 11.0) * 6_390_000 * math.cos(math.radians(48.0))
    assert east == pytest.approx(pos[0], abs=1e-3)
    assert fix.altitude - 600.0 == pytest.approx(pos[2], abs=1e-6)
    assert fix.position_covariance_type == NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN
    twist = at["odom"].twist.twist
    velocity, rate = numbers(twist.linear), numbers(twist.angular)
    distance = pos[2] / -body_to_world(quat, np.array([0.0, 0.0, -1.0]))[2]
    flow = at["flow"].twist.angular
    assert flow.x == pytest.approx(velocity[1] / distance + rate[0], abs=1e-6)
    assert flow.y == pytest.approx(-velocity[0] / distance + rate[1], abs=1e-6)
    assert math.hypot(flow.x, flow.y) > 0.05


def test_the_battery_runs_down(client: Client) -> None:
    told = client.collect(BatteryState, "cf0/battery")
    client.reset()
    client.until(lambda: client.advance(50) and told, "full battery")
    assert told[-1].percentage == 1.0 and told[-1].current == 0.0
    assert told[-1].voltage == pytest.approx(4.2, abs=1e-5)
    client.advance(500)  # it begins in the air, and falls
    client.publish("cf0/cmd_vel", TwistStamped(twist=Twist(linear=Vector3(z=0.5))))
    client.newest(told, client.advance(1000) // 50 * 50)
    first, last = told[-8], told[-1]
    battery = Battery.of("cf2x_L250")
    source = float(battery.voltage(np.float64(last.capacity - last.charge)))
    assert last.voltage == pytest.approx(source + battery.resistance * last.current, abs=1e-4)
    assert list(last.cell_voltage) == [last.voltage]
    assert last.charge == pytest.approx(last.percentage * last.capacity, rel=1e-6)
    drawn = (first.charge - last.charge) * 3600  # A s, in 0.7 s
    currents = [message.current for message in told[-8:]]
    assert -3.0 < np.mean(currents) < -1.5
    assert drawn == pytest.approx(-0.7 * np.mean(currents), rel=0.05)
    client.reset()
    at = client.advance(50) // 50 * 50
    client.newest(told, at)
    assert told[-1].percentage == 1.0


def test_motion_capture_is_late_and_has_gaps(client: Client) -> None:
    told, odometry = client.collect(PoseStamped, "cf0/mocap"), client.collect(Odometry, "cf0/odom")
    ends = []

    def enough() -> bool:
        ends.append(client.advance(100))
        return len(told) > 25

    client.until(enough, "poses")
    client.newest(odometry, ends[-1] // 5 * 5)
    truth = {time_ns(m.header.stamp): m.pose.pose for m in odometry}
    assert {m.header.frame_id for m in told} == {"map"}
    assert max(time_ns(m.header.stamp) for m in told) <= stamp_ns(ends[-1]) - 40_000_000
    errors = [
        numbers(m.pose.position) - numbers(truth[time_ns(m.header.stamp)].position) for m in told
    ]
    assert 0.0004 < np.std(errors) < 0.002
    for message in told[:3]:
        exact = numbers(truth[time_ns(message.header.stamp)].orientation)
        assert abs(numbers(message.pose.orientation) @ exact) == pytest.approx(1.0, abs=1e-6)
    first, last = (time_ns(m.header.stamp) // 20_000_000 for m in (told[0], told[-1]))
    assert 0.4 < len(told) / (last - first + 1) < 0.95  # with 0.7 expected


def test_the_state_after_a_reset_is_sensed_with_the_errors_after_it(client: Client) -> None:
    told = client.collect(Imu, "cf0/drift/data_raw")
    client.until(lambda: client.advance(50) and told, "readings")
    tick = client.advance(5 - client.advance(1) % 5)
    client.newest(told, tick)
    before = numbers(told[-1].angular_velocity)
    told.clear()
    client.reset()
    end = client.advance(100)
    client.newest(told, end)
    assert time_ns(told[0].header.stamp) == stamp_ns(tick)
    turns = np.array([numbers(message.angular_velocity) for message in told])  # it falls straight
    np.testing.assert_allclose(turns - turns[0], 0.0, atol=1e-6)
    assert not np.isclose(turns[0], before).any()


def test_a_drone_on_the_floor_feels_its_weight(client: Client) -> None:
    wrenches = client.collect(WrenchStamped, "cf1/touch")
    markers = client.collect(MarkerArray, "cf1/touch/markers")
    of_wall = client.collect(WrenchStamped, "cf1/wall")
    touches = [client.collect(Bool, f"cf1/{name}/in_contact") for name in ("touch", "wall")]
    client.reset()
    lists = (wrenches, markers, of_wall, *touches)
    client.until(lambda: client.advance(500) and all(lists), "contacts of cf1")
    at = client.advance(500)
    (last,) = client.until(
        lambda: [m for m in wrenches if time_ns(m.header.stamp) > stamp_ns(at - 50)], "wrench"
    )
    assert last.header.frame_id == "cf1/base_link"
    weight = load_drone("cf2x_L250")["mass"] * 9.81
    np.testing.assert_allclose(numbers(last.wrench.force), [0, 0, weight], atol=2e-3)
    np.testing.assert_allclose(numbers(last.wrench.torque), 0.0, atol=1e-5)
    assert not numbers(of_wall[-1].wrench.force).any()
    assert [told[-1].data for told in touches] == [True, False]
    places, forces = markers[-1].markers
    assert len(places.points) == 4 and places.header.frame_id == "map"
    assert max(abs(point.z) for point in places.points) < 1e-3
    starts, ends = forces.points[::2], forces.points[1::2]
    assert len(starts) == 4 and all(end.z > start.z for start, end in zip(starts, ends))


def test_markers_are_where_rays_end(client: Client) -> None:
    markers = client.collect(MarkerArray, "cf0/scan/markers")
    beams = client.collect(MarkerArray, "cf0/ring/markers")
    client.reset()
    client.until(lambda: client.advance(50) and markers and beams, "markers")
    for (hits, rays), most in ((markers[-1].markers, 72), (beams[-1].markers, 5)):
        points = np.array([numbers(point) for point in hits.points])
        assert 1 < len(points) < most and len(rays.points) == 2 * most
        assert to_room(points).max() < 1e-6
        assert len(hits.colors) == len(hits.points) and hits.scale.x > 0.001


def test_a_drone_that_comes_has_the_sensors_of_all(client: Client) -> None:
    """It comes far away, and the cameras of the others see as before."""
    resource = Resource(uri="cf2x_L250")
    pose = PoseStamped()
    pose.pose.position.x, pose.pose.position.z = 3000.0, 1.0
    spawned = client.call(
        SpawnEntity, "crazyflow/spawn_entity", name="guest", entity_resource=resource,
        initial_pose=pose,
    )  # fmt: skip
    assert spawned.result.result == spawned.result.RESULT_OK, spawned.result.error_message
    scans = client.collect(LaserScan, "guest/scan")
    client.until(lambda: client.advance(50) and scans, "scans of the guest")
    assert scans[-1].header.frame_id == "guest/base_link" and min(scans[-1].ranges) == math.inf
    static = client.collect(TFMessage, "/tf_static", LATCHED)

    def frames() -> set[str]:
        return {t.child_frame_id for message in static[-1:] for t in message.transforms}

    client.until(lambda: "guest/imu" in frames(), "static transforms of the guest")
    assert {"cf1/imu", "cf0/cloud"} <= frames() and "guest/cloud" not in frames()
    check_pictures(client)
    gone = client.call(DeleteEntity, "crazyflow/delete_entity", entity="guest")
    assert gone.result.result == gone.result.RESULT_OK
    client.until(lambda: not client.node.count_publishers("guest/scan"), "end of the topics")
    others = client.collect(LaserScan, "cf1/scan")
    client.until(lambda: client.advance(50) and others, "scans of the others")


def test_the_docs_list_the_topics_of_all_sensors(client: Client) -> None:
    """With their types; all are reliable."""
    listed, kind = set(), ""
    for line in (ROOT / "docs" / "reference" / "sensors_file.md").read_text().splitlines():
        cells = [cell.strip("` ") for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 6 and "<name>" in cells[2]:
            kind = cells[0] or kind
            listed.add((kind, cells[2], cells[3]))
    client.until(lambda: "crazyflow" in client.node.get_node_names(), "node in the graph")
    published = set()
    for owner, entries in yaml.safe_load(SENSORS).items():
        for name, entry in entries.items():
            start = f"/{'cf0' if owner == 'all' else owner}/{name}"
            for topic, _ in client.node.get_publisher_names_and_types_by_node("crazyflow", "/"):
                if f"{topic}/".startswith(f"{start}/") and topic != "/cf0/imu":  # the truth
                    (info,) = client.node.get_publishers_info_by_topic(topic)
                    assert info.qos_profile.reliability == QoSReliabilityPolicy.RELIABLE
                    message = info.topic_type.rpartition("/")[2]
                    published.add((entry["type"], topic.replace(start, "<name>"), message))
    drawn = {kind for kind, path, _ in published if path == "<name>/markers"}
    assert drawn == {
        "range", "multiranger", "lidar", "grid", "ring", "pinhole", "height", "contact",
    }  # fmt: skip
    assert published == listed


def test_other_readers_accept_the_messages_of_all_sensors(client: Client) -> None:
    wire = Wire(client, "crazyflow")
    own = {f"/crazyflow/{name}" for name in ("flight_events", "reset_event")}
    wire.check(lambda: client.advance(50) and None, own)


def test_who_begins_to_listen_to_a_camera_sees_the_present(client: Client) -> None:
    """While time stands still, so that a lock-step program can begin with a picture."""
    tick = client.advance(7)
    other = Client(DOMAIN)  # the subscriptions of the first one may be older
    seen = other.collect(Image, "cf0/eye/depth/image_raw")
    other.until(lambda: seen, "a picture")
    other.close()
    assert {time_ns(message.header.stamp) for message in seen} == {stamp_ns(tick)}


def check_pictures(client: Client) -> None:
    """Pictures, depths and identities belong together."""
    at = sensed(
        client, eye__image_raw=Image, eye__depth__image_raw=Image,
        eye__segmentation__image_raw=Image, eye__camera_info=CameraInfo,
        eye__image_raw__compressed=CompressedImage,
    )  # fmt: skip
    rgb, depth, ids = (at[f"eye/{k}image_raw"] for k in ("", "depth/", "segmentation/"))
    info, small = at["eye/camera_info"], at["eye/image_raw/compressed"]
    frames = {m.header.frame_id for m in (rgb, depth, ids, info, small)}
    assert frames == {"cf0/fpv_camera_optical_frame"}
    assert (rgb.encoding, depth.encoding, ids.encoding) == ("rgb8", "32FC1", "32SC1")
    assert (info.width, info.height, rgb.step, depth.step) == (64, 48, 192, 256)
    pixels = np.frombuffer(rgb.data, np.uint8).reshape(48, 64, 3)
    jpeg = np.asarray(PIL.Image.open(io.BytesIO(small.data)), float)
    assert small.format.startswith("rgb8; jpeg") and np.abs(jpeg - pixels).mean() < 8
    z = np.frombuffer(depth.data, "<f4").reshape(48, 64).astype(float)
    names = np.frombuffer(ids.data, "<i4").reshape(48, 64)
    rows, columns = np.indices(z.shape)
    in_camera = np.stack(
        [(columns - info.k[2]) / info.k[0] * z, (rows - info.k[5]) / info.k[4] * z, z], axis=-1
    )
    east = names == 1
    assert east.sum() > 100
    world = at.carried("eye/depth/image_raw", in_camera[east])
    np.testing.assert_allclose(world[:, 0], 3.0, atol=1e-3)
    is_red = pixels[east, 0] > 2 * pixels[east, 1].astype(int)
    assert is_red.mean() > 0.9  # but for edges, and what shines through the rotors
    np.testing.assert_array_equal(np.isinf(z), names == -1)
