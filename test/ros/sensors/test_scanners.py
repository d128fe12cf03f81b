"""Lidars that scan while they move, against walls of known places and drivers' sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Twist, TwistStamped, Vector3
from nav_msgs.msg import Odometry
from ros_client import FREQ, Client, SimulatorProcess, numbers, own_domain, stamp_ns, time_ns
from scipy.spatial.transform import Rotation, Slerp
from sensor_msgs.msg import PointCloud2, PointField

from crazyflow_ros.ros.sensors.kinds import KINDS

DOMAIN = own_domain("test_ros_scanners")
PERIOD = FREQ // 10  # ticks
ROOM = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 .1" rgba=".2 .2 .2 1"/>
    <geom type="box" size=".5 4 4" pos="3.5 0 0" rgba="1 1 1 1"/>
    <geom type="box" size=".5 4 4" pos="-3.5 0 0" rgba="1 0 0 1"/>
    <geom type="box" size="4 .5 4" pos="0 2.5 0" rgba=".6 .6 .6 1"/>
  </worldbody>
</mujoco>"""  # open to the south and above
EXACT = "noise: {}, min_distance: 0.0"
SENSORS = f"""
cf0:
  velodyne: {{type: vlp16, samples: 360, pos: [0.05, 0.02, 0.06], rpy: [10, 0, 30], {EXACT}}}
  ouster: {{type: os1, samples: 256, elevations: [20, 0, -20], organized: true, {EXACT}}}
  livox: {{type: mid360, points: 20000, {EXACT}}}
  rough: {{type: hdl32, samples: 180, {EXACT.replace("{}", "{std: 0.02}")}}}
"""
U8, U16, U32, F32, F64 = (
    PointField.UINT8, PointField.UINT16, PointField.UINT32, PointField.FLOAT32, PointField.FLOAT64,
)  # fmt: skip
DTYPES = {U8: "u1", U16: "<u2", U32: "<u4", F32: "<f4", F64: "<f8"}
XYZ = [("x", 0, F32), ("y", 4, F32), ("z", 8, F32)]
# Of the drivers: point_step, and fields beside XYZ.
FIELDS = {
    # velodyne_pointcloud/src/conversions/pointcloudXYZIRT.cpp
    "velodyne": (22, [("intensity", 12, F32), ("ring", 16, U16), ("time", 18, F32)]),
    # ouster-ros/include/ouster_ros/os_point.h; `ring` as FAST_LIO/src/preprocess.h reads it
    "ouster": (
        48,
        [
            ("intensity", 16, F32), ("t", 20, U32), ("reflectivity", 24, U16), ("ring", 26, U8),
            ("ambient", 28, U16), ("range", 32, U32),
        ],
    ),
    # livox_ros_driver2/src/lddc.cpp, include/livox_ros_driver2.h (LivoxPointXyzrtlt)
    "livox": (
        26, [("intensity", 12, F32), ("tag", 16, U8), ("line", 17, U8), ("timestamp", 18, F64)],
    ),
}  # fmt: skip
WHITE = {"velodyne": 100, "livox": 150}
TIME = {"velodyne": ("time", 1.0), "ouster": ("t", 1e-9), "livox": ("timestamp", 1e-9)}


class Flight:
    """A second of flight that turns, and what was published."""

    def __init__(self, client: Client) -> None:
        self.odometry = client.collect(Odometry, "cf0/odom")
        names = (*FIELDS, "rough")
        self.clouds = {name: client.collect(PointCloud2, f"cf0/{name}") for name in names}
        client.until(lambda: client.advance(PERIOD) and all(self.clouds.values()), "clouds")
        for _ in range(30):
            twist = Twist(linear=Vector3(x=1.0, y=0.3, z=0.1), angular=Vector3(z=1.5))
            client.publish("cf0/cmd_vel", TwistStamped(twist=twist))
            self.tick = client.advance(PERIOD)
        end = stamp_ns(self.tick // PERIOD * PERIOD - PERIOD)  # of the start of the last scan

        def is_there() -> bool:
            last = [time_ns(one[-1].header.stamp) for one in self.clouds.values()]
            return set(last) == {end} and time_ns(self.odometry[-1].header.stamp) > end + 10**8 - 1

        client.until(is_there, "the last scans")
        times = np.array([time_ns(m.header.stamp) for m in self.odometry]) / 1e9
        times, rows = np.unique(times, return_index=True)
        poses = [self.odometry[row].pose.pose for row in rows]
        self._times, self._places = times, np.array([numbers(p.position) for p in poses])
        self._turns = Slerp(times, Rotation.from_quat([numbers(p.orientation) for p in poses]))

    def into_map(self, times: np.ndarray, points: np.ndarray, pos: Any, rpy: Any) -> np.ndarray:
        """Points in the axes of a sensor on the drone, each at its time [s], in the map."""
        on_drone = Rotation.from_euler("xyz", rpy, degrees=True).apply(points) + pos
        places = [np.interp(times, self._times, column) for column in self._places.T]
        return self._turns(times).apply(on_drone) + np.column_stack(places)


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flight]:
    folder: Path = tmp_path_factory.mktemp("scanners")
    for name, text in (("room.xml", ROOM), ("sensors.yaml", SENSORS)):
        (folder / name).write_text(text)
    files = [f"scene:={folder / 'room.xml'}", f"sensors:={folder / 'sensors.yaml'}"]
    rates = [
        "publish_rates.odom:=500",
        "start_paused:=true",
        "initial_poses:=[-1.0, -1.0, 0.0, 0.3]",
    ]
    with SimulatorProcess(DOMAIN, [*files, *rates]) as simulator:
        client = Client(DOMAIN)
        yield Flight(client)
        client.close()
        assert simulator.end()[0] == 0
        assert "WARN" not in simulator.log and "ERROR" not in simulator.log


def read(message: PointCloud2) -> np.ndarray:
    names, offsets, kinds = zip(*((f.name, f.offset, DTYPES[f.datatype]) for f in message.fields))
    layout = {"names": names, "offsets": offsets, "formats": kinds, "itemsize": message.point_step}
    points = np.frombuffer(bytes(message.data), np.dtype(layout))
    return points.reshape(message.height, message.width)


def seconds(driver: str, message: PointCloud2, points: np.ndarray) -> np.ndarray:
    name, unit = TIME[driver]
    start = time_ns(message.header.stamp) / 1e9
    return points[name] * unit + (0.0 if driver == "livox" else start)


def xyz(points: np.ndarray) -> np.ndarray:
    return np.stack([points[axis] for axis in "xyz"], axis=-1).astype(float)


def to_walls(points: np.ndarray) -> np.ndarray:
    """Distances (n, 4) to the floor and the planes of the walls."""
    x, y, z = points.T
    return np.abs(np.column_stack([z, x - 3, x + 3, y - 2]))


@pytest.mark.parametrize("driver", FIELDS)
def test_points_have_the_layout_of_the_driver(flight: Flight, driver: str) -> None:
    step, fields = FIELDS[driver]
    for message in flight.clouds[driver]:
        assert [(f.name, f.offset, f.datatype) for f in message.fields] == [*XYZ, *fields]
        assert {f.count for f in message.fields} == {1} and message.point_step == step
        assert message.row_step == step * message.width and not message.is_bigendian
        assert len(message.data) == message.row_step * message.height
        assert message.is_dense == (driver != "ouster")


@pytest.mark.parametrize("name", [*FIELDS, "rough"])
def test_no_scan_is_left_out(flight: Flight, name: str) -> None:
    stamps = [time_ns(message.header.stamp) for message in flight.clouds[name]]
    assert set(np.diff(stamps)) == {100_000_000} and len(stamps) > 30


@pytest.mark.parametrize(
    ("driver", "place"),
    [("velodyne", ([0.05, 0.02, 0.06], [10, 0, 30])), ("ouster", ([0, 0, 0], [0, 0, 0])),
     ("livox", ([0, 0, 0], [0, 0, 0]))],
)  # fmt: skip
def test_each_point_was_seen_from_the_pose_at_its_time(
    flight: Flight, driver: str, place: tuple[Any, Any]
) -> None:
    """Carried from there, all are on the walls; from the pose of the stamp, they are not."""
    distorted = []
    for message in flight.clouds[driver][-10:]:
        points = read(message).ravel()
        points = points[np.isfinite(points["x"])]
        times, start = seconds(driver, message, points), time_ns(message.header.stamp) / 1e9
        assert times.min() - start < 0.01 and 0.08 < times.max() - start < 0.1
        if driver != "ouster":
            assert (np.diff(times) >= 0).all() and len(points) > 500
        local = xyz(points)
        found = flight.into_map(times, local, *place)
        assert to_walls(found).min(axis=1).max() < 1e-3
        at_once = flight.into_map(np.full_like(times, start), local, *place)
        distorted.append(to_walls(at_once).min(axis=1).max())
    assert max(distorted) > 0.1


def test_rings_are_elevations_and_turns_are_clockwise(flight: Flight) -> None:
    elevations = {
        "velodyne": np.arange(-15, 16, 2), "rough": np.linspace(-30.67, 10.67, 32),
        "ouster": np.array([20, 0, -20]),
    }  # fmt: skip
    for name, expected in elevations.items():
        points = read(flight.clouds[name][-1]).ravel()
        points = points[np.isfinite(points["x"])]
        x, y, z = xyz(points).T
        angles = np.degrees(np.arctan2(z, np.hypot(x, y)))
        np.testing.assert_allclose(angles, expected[points["ring"]], atol=1e-3)
        first = math.pi if name == "ouster" else 0.0
        driver = "ouster" if name == "ouster" else "velodyne"
        offset = points[TIME[driver][0]] * TIME[driver][1]
        azimuth = first - math.tau * offset / 0.1
        np.testing.assert_allclose(np.cos(np.arctan2(y, x) - azimuth), 1.0, atol=1e-6)
    assert read(flight.clouds["ouster"][-1]).shape == (3, 256)


@pytest.mark.parametrize("driver", ["velodyne", "livox"])
def test_intensity_is_reflectance_times_cosine(flight: Flight, driver: str) -> None:
    """Of the four surfaces: dark floor, white, red and grey walls."""
    place = ([0.05, 0.02, 0.06], [10, 0, 30]) if driver == "velodyne" else ([0, 0, 0], [0, 0, 0])
    message = flight.clouds[driver][-1]
    points = read(message).ravel()
    times, local = seconds(driver, message, points), xyz(points)
    ends = flight.into_map(times, local, *place)
    ways = ends - flight.into_map(times, 0.0 * local, *place)
    away = np.sort(to_walls(ends), axis=1)
    wall = to_walls(ends).argmin(axis=1)
    cosines = np.abs(ways[np.arange(len(ways)), np.array([2, 0, 0, 1])[wall]])
    cosines /= np.linalg.norm(ways, axis=1)
    reflectance = np.array([0.2, 1.0, 0.33, 0.6])[wall]  # MuJoCo's colours, rounded to percent
    inside = away[:, 1] > 0.05  # not in a corner
    assert {0, 1, 2, 3} == set(wall[inside])
    expected = WHITE[driver] * reflectance * cosines
    np.testing.assert_allclose(points["intensity"][inside], expected[inside], atol=0.5)


def test_ouster_tells_ranges_and_reflectivity(flight: Flight) -> None:
    points = read(flight.clouds["ouster"][-1])
    hit = np.isfinite(points["x"])
    np.testing.assert_allclose(
        points["range"][hit], 1e3 * np.linalg.norm(xyz(points[hit]), axis=1), atol=1.0
    )
    assert not hit.all() and not points["range"][~hit].any() and not points["intensity"][~hit].any()
    assert not points["ambient"].any() and 30 < points["reflectivity"].max() <= 100


def test_the_noise_is_along_the_rays(flight: Flight) -> None:
    """Against the exact walls, those seen straight on."""
    message = flight.clouds["rough"][-1]
    points = read(message).ravel()
    times, local = seconds("velodyne", message, points), xyz(points)
    ends = flight.into_map(times, local, [0, 0, 0], [0, 0, 0])
    starts = flight.into_map(times, 0.0 * local, [0, 0, 0], [0, 0, 0])
    way = (ends - starts) / np.linalg.norm(local, axis=1, keepdims=True)
    ahead = (way[:, 0] > 0.9) & (np.abs(ends[:, 0] - 3) < 0.2)
    ahead &= (ends[:, 1] < 1.5) & (ends[:, 2] > 0.2)
    errors = (ends[ahead, 0] - 3.0) / way[ahead, 0]
    assert ahead.sum() > 100 and np.std(errors) == pytest.approx(0.02, rel=0.25)


def test_a_mid360_fills_its_view_and_does_not_repeat() -> None:
    """Within 0.1 s nearly nothing, within a second most cells of a degree."""
    pattern = KINDS["mid360"].configuration("lidar", None, {}, "cf2x_L250").pattern
    seen: set[tuple[int, int]] = set()
    shares = []
    for scan in range(20):
        rays = pattern.sweep(scan / 10, 0.1).reshape(-1, 3)
        assert len(rays) == 20_000
        np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1.0)
        angles = np.degrees([np.arctan2(rays[:, 1], rays[:, 0]), np.arcsin(rays[:, 2])])
        assert -7.001 < angles[1].min() < -6.5 and 51.5 < angles[1].max() < 52.001
        seen |= set(map(tuple, np.floor(angles).astype(int).T.tolist()))
        shares.append(len(seen) / (360 * 59))
    assert shares[0] < 0.5 and 0.9 < shares[9] < shares[19]
