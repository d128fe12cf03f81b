"""Lidars and cameras of the node, from a second process, in a room of known size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from rendering import renderer_is_missing
from ros_client import (
    LATCHED,
    Client,
    SimulatorProcess,
    numbers,
    own_domain,
    stamp_ns,
    time_ns,
)
from sensor_msgs.msg import CameraInfo, Image, LaserScan, PointCloud2
from tf2_msgs.msg import TFMessage

from crazyflow_ros.ros.declaration import ParameterError
from crazyflow_ros.ros.sensor_config import Camera, Lidar, load
from crazyflow_ros.scene.frames import body_to_world

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
cf0:
  cloud: {type: lidar, rate: 5, samples: 24, elevations: [-20, 0, 20]}
  eye: {type: camera, rate: 5, width: 64, height: 48, data_types: [rgb, depth, segmentation]}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("sensors")
    for name, text in (("room.xml", ROOM), ("sensors.yaml", SENSORS)):
        (folder / name).write_text(text)
    values = {
        "drones": "[cf0, cf1]", "scene": folder / "room.xml", "sensors": folder / "sensors.yaml",
        "initial_poses": "[0.4, -0.3, 1.0, 0.5, 0.0, -20.0, 0.1, 0.0]", "start_paused": "true",
    }  # fmt: skip
    arguments = [part for name, value in values.items() for part in ("-p", f"{name}:={value}")]
    with SimulatorProcess(DOMAIN, arguments):
        client = Client(DOMAIN)
        yield client
        client.close()


def sensed(client: Client, **kinds: Any) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Messages of topics of cf0 at one tick, and the drone's position and attitude xyzw then."""
    names = {name.replace("__", "/"): kind for name, kind in kinds.items()}
    lists = {name: client.collect(kind, f"cf0/{name}") for name, kind in names.items()}
    odometry = client.collect(Odometry, "cf0/odom")

    def at(tick: int) -> dict[str, Any]:
        found = {
            name: [m for m in messages if time_ns(m.header.stamp) == stamp_ns(tick)]
            for name, messages in lists.items()
        }
        return {name: messages[0] for name, messages in found.items() if messages}

    for _ in range(20):  # until the simulator has found our subscriptions
        tick = client.advance(100) // 100 * 100  # when all that has a period of 100 was due
        with suppress(AssertionError):
            client.until(lambda: len(at(tick)) == len(lists), "sensors", timeout=2.0)  # noqa: B023
            pose = client.newest(odometry, tick).pose.pose
            return at(tick), numbers(pose.position), numbers(pose.orientation)
    raise AssertionError(f"no messages of {', '.join(lists)} at one tick")


def static_transforms(client: Client) -> list[Any]:
    messages = client.collect(TFMessage, "/tf_static", LATCHED)
    return client.until(lambda: messages, "static transforms")[0].transforms


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
    messages, pos, quat = sensed(client, scan=LaserScan)
    scan = messages["scan"]
    assert scan.header.frame_id == "cf0/base_link"
    angles = scan.angle_min + scan.angle_increment * np.arange(72)
    assert angles[-1] == pytest.approx(scan.angle_max, abs=1e-5)
    directions = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    expected = distances(pos, body_to_world(quat, directions))
    expected[expected > 6.0] = np.inf
    assert 0 < np.isinf(expected).sum() < 40
    np.testing.assert_allclose(scan.ranges, expected, rtol=1e-5)
    assert scan.range_max == 6.0 and scan.scan_time == pytest.approx(0.1)


def test_points_of_a_cloud_carried_into_the_world_are_on_the_walls(client: Client) -> None:
    messages, pos, quat = sensed(client, cloud=PointCloud2)
    cloud = messages["cloud"]
    assert (cloud.height, cloud.width, cloud.is_dense) == (3, 24, False)
    points = np.frombuffer(cloud.data, "<f4").reshape(3, 24, 3).astype(float)
    seen = np.isfinite(points).all(axis=-1)
    world = pos + body_to_world(quat, points[seen])
    to_room = [np.abs(world[:, 0] - 3), np.abs(world[:, 0] + 3), np.abs(world[:, 1] - 2)]
    assert np.min([*to_room, np.abs(world[:, 2])], axis=0).max() < 3e-6
    assert 30 < seen.sum() < 72


def test_pictures_depths_and_identities_belong_together(client: Client) -> None:
    if reason := renderer_is_missing():
        pytest.skip(reason)
    messages, pos, quat = sensed(
        client, eye__image_raw=Image, eye__depth__image_raw=Image,
        eye__segmentation__image_raw=Image, eye__camera_info=CameraInfo,
    )  # fmt: skip
    rgb, depth, ids, info = messages.values()
    assert {m.header.frame_id for m in messages.values()} == {"cf0/fpv_camera_optical_frame"}
    assert (rgb.encoding, depth.encoding, ids.encoding) == ("rgb8", "32FC1", "32SC1")
    assert (info.width, info.height, rgb.step, depth.step) == (64, 48, 192, 256)
    pixels = np.frombuffer(rgb.data, np.uint8).reshape(48, 64, 3)
    z = np.frombuffer(depth.data, "<f4").reshape(48, 64).astype(float)
    names = np.frombuffer(ids.data, "<i4").reshape(48, 64)
    rows, columns = np.indices(z.shape)
    in_camera = np.stack(
        [(columns - info.k[2]) / info.k[0] * z, (rows - info.k[5]) / info.k[4] * z, z], axis=-1
    )
    link, optical = (
        transform.transform
        for transform in static_transforms(client)
        if transform.child_frame_id.startswith("cf0/fpv_camera")
    )
    in_link = body_to_world(numbers(optical.rotation), in_camera)
    in_base = numbers(link.translation) + body_to_world(numbers(link.rotation), in_link)
    world = pos + body_to_world(quat, in_base)
    east = names == 1
    assert east.sum() > 100
    np.testing.assert_allclose(world[east, 0], 3.0, atol=1e-3)
    assert (pixels[east, 0] > 2 * pixels[east, 1].astype(int)).all()  # it is red
    np.testing.assert_array_equal(np.isinf(z), names == -1)


# The file


def test_what_the_drones_carry(tmp_path: Path) -> None:
    (file := tmp_path / "s.yaml").write_text(SENSORS)
    devices = load(str(file), ["cf0", "cf1"])
    assert set(devices) == {("cf0", "scan"), ("cf1", "scan"), ("cf0", "cloud"), ("cf0", "eye")}
    assert devices["cf1", "scan"] == Lidar(rate=10, samples=72, max_distance=6.0)
    assert isinstance(devices["cf0", "eye"], Camera)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "expected a YAML file"),
        ("3", "expected sensors by drone, got 3"),
        ("cf7: {s: {type: lidar}}", "expected drones of cf0, or all, got 'cf7'"),
        ("cf0: {s: {type: sonar}}", "cf0/s with a type of lidar, camera, got 'sonar'"),
        ("cf0: {s: {type: lidar, range: 3}}", r"cf0/s with .*samples, got \['range'\]"),
        ("cf0: {s: {type: lidar, samples: 0}}", r"what cf0/s can be \(lidar pattern: 0 samples"),
        ("cf0: {s: {type: camera, data_types: [heat]}}", "data_types"),
        ("cf0: {s: {type: lidar, samples: many}}", "what cf0/s can be"),
        ("cf0: {s: {type: camera, rate: fast}}", "a rate of cf0/s in whole Hz, got 'fast'"),
        ("cf0: {s: {type: camera, rate: 0}}", "a rate of cf0/s in whole Hz, got 0"),
        ("cf0: {a b: {type: lidar}}", "names with values for cf0"),
        ("cf0: 3", "sensors of cf0 by name, got 3"),
    ],
)
def test_files_that_cannot_be_used_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (file := tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ParameterError, match=rf"^sensors: .*{message}"):
        load(str(file), ["cf0"])


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ParameterError, match="No such file"):
        load("/nowhere.yaml", ["cf0"])
