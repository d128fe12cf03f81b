"""What drones carry, against closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from crazyflow_ros.drones.instruments import VL53L1X, VL53L1X_FIELD_OF_VIEW
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import quat_from_rpy, rotation_matrix
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    CameraSensorCfg,
    GnssSensorCfg,
    ImuSensorCfg,
    MagnetometerSensorCfg,
    MotionCaptureSensorCfg,
    MujocoBackend,
    NoiseCfg,
    ObjRef,
    OpticalFlowSensorCfg,
    RangerSensorCfg,
    SensorSet,
    ShapeRecorder,
    decks,
)
from crazyflow_ros.sensors.battery import BatterySensorCfg
from crazyflow_ros.sensors.gnss import enu_to_geodetic
from crazyflow_ros.sensors.ranger import DOWN
from crazyflow_ros.sim.actuation import Battery

BATTERY = Battery(0.25, 4.2, knee=(0.02, 4.0), nominal=(0.2, 3.6), resistance=0.1)
DRONE = ObjRef("xbody", "drone", "cf0")


def on_drone(
    cfg: Any, pos: tuple[float, float, float] = (0, 0, 1), rpy: tuple = (0, 0, 0), more: str = "",
    worlds: int = 1, rgb: float = 0.5,
) -> Any:  # fmt: skip
    """A sensor of cf0, at a pose, that has sampled once."""
    attitude = quat_from_rpy(np.array(rpy, float))
    spec = build_spec("cf2x_L250", ["cf0", "cf1"], poses=[[*pos, *attitude], [9, 9, 1, 0, 0, 0, 1]])
    for line in more.split(";") if more else ():
        *size, x, y, z = map(float, line.split())
        kind = mujoco.mjtGeom.mjGEOM_BOX
        spec.worldbody.add_geom(type=kind, size=size, pos=[x, y, z], rgba=[rgb, rgb, rgb, 1])
    sensor = cfg.build()
    sensor.edit_spec(spec)
    model = spec.compile()
    data = [mujoco.MjData(model) for _ in range(worlds)]
    for one in data:
        mujoco.mj_kinematics(model, one)
    sensor.initialize(MujocoBackend(model, data))
    sensor.update(0.1)
    return sensor


# Rangers


def ranger(**options: Any) -> RangerSensorCfg:
    return RangerSensorCfg(**{"name": "ranger", "frame": DRONE, "noise": NoiseCfg()} | options)


def test_a_multi_ranger_in_a_room_with_an_open_side() -> None:
    walls = ".1 3 3 2.1 0 1;.1 3 3 -1.6 0 1;3 .1 3 0 1.1 1;1 1 .1 0 0 2.6"
    ranges = on_drone(ranger(), more=walls).data.ranges
    np.testing.assert_allclose(ranges, [[2.0, 1.5, 1.0, np.inf, 1.5]], atol=1e-8)


def test_beams_turn_with_the_drone_and_miss_its_own_parts() -> None:
    upright = math.cos(0.3) * math.cos(0.2)
    single = on_drone(ranger(directions=DOWN, field_of_view=0.0), rpy=(0.3, -0.2, 1.0)).data.ranges
    assert single[0, 0] == pytest.approx(1 / upright, abs=1e-8)
    cone = on_drone(ranger(directions=DOWN), rpy=(0.3, -0.2, 1.0)).data.ranges[0, 0]
    nearest = 1 / math.cos(math.acos(upright) - VL53L1X_FIELD_OF_VIEW / 2)
    assert nearest <= cone < nearest + 3e-3


@pytest.mark.parametrize("beside", [7.0, 10.0, 13.0])
def test_a_post_beside_the_axis_is_in_the_cone_but_not_on_a_single_ray(beside: float) -> None:
    x, y = math.cos(math.radians(beside)), math.sin(math.radians(beside))
    post = f".02 .02 1 {x} {y} 1"
    front = on_drone(ranger(), more=post).data.ranges[0, 0]
    assert x - 0.02 <= front < 1.1  # in the horizontal plane, the nearest point is a corner
    assert np.isposinf(on_drone(ranger(field_of_view=0.0), more=post).data.ranges[0, 0])
    outside = f".02 .02 1 {math.cos(0.28)} {math.sin(0.28)} 1"
    assert np.isposinf(on_drone(ranger(), more=outside).data.ranges[0, 0])


@pytest.mark.parametrize(("reflectance", "far"), [(0.88, 3.6), (0.54, 3.4), (0.17, 1.7)])
def test_targets_of_the_data_sheet_are_seen_as_far_as_it_says(
    reflectance: float, far: float
) -> None:
    def seen(x: float, **options: Any) -> float:
        wall = f"0.1 3 3 {x + 0.1} 0 1"
        sensor = on_drone(ranger(**options), more=wall, rgb=reflectance)
        return float(sensor.data.ranges[0, 0])

    assert seen(far - 0.01) == pytest.approx(far - 0.01)
    assert seen(far + 0.01) == math.inf
    assert seen(3.9, by_reflectance=False) == pytest.approx(3.9)


def test_too_near_too_far_and_noise_in_between() -> None:
    floor_at = {0.03: -np.inf, 0.05: 0.05, 3.99: 3.99, 4.01: np.inf}
    for height, expected in floor_at.items():
        cfg = ranger(directions=DOWN, include_geom_groups=(0,), by_reflectance=False)
        assert on_drone(cfg, pos=(0, 0, height)).data.ranges[0, 0] == pytest.approx(expected)
    noisy = on_drone(ranger(directions=DOWN, noise=NoiseCfg(std=0.01)), worlds=400).data
    assert np.std(noisy.ranges) == pytest.approx(0.01, rel=0.15)
    assert noisy.variance == pytest.approx(np.full((400, 1), 1e-4))
    dense = on_drone(ranger(directions=DOWN, noise=NoiseCfg(density=0.2))).data  # at 10 Hz
    assert dense.variance == pytest.approx(0.4)


def test_default_errors_are_those_of_the_vl53l1x() -> None:
    cfg = RangerSensorCfg(name="r", frame=DRONE, directions=DOWN)
    data = on_drone(cfg, worlds=400).data
    assert np.std(data.ranges) == pytest.approx(math.hypot(0.00253, 0.01), rel=0.15)
    assert np.mean(data.ranges) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize(("height", "std"), [(1.0, 0.00253), (2.5, 0.005), (3.0, 0.0133)])
def test_noise_grows_with_the_distance_as_in_the_firmware(height: float, std: float) -> None:
    """zranger2.c: 2.5 mm (1 + exp(ln(0.2 / 0.0025) (d - 2.5 m) / 1.5 m))."""
    noise = replace(VL53L1X, bias=0.0)
    cfg = ranger(directions=DOWN, noise=noise, by_reflectance=False)
    data = on_drone(cfg, pos=(0, 0, height), worlds=1000).data
    assert np.std(data.ranges) == pytest.approx(std, rel=0.07)
    assert np.sqrt(np.mean(data.variance)) == pytest.approx(std, rel=0.03)
    assert pytest.approx(0.0025 * VL53L1X.spread(np.array(4.0)), rel=1e-3) == 0.2025


def test_another_drone_is_seen_as_what_it_collides_as() -> None:
    cfg = ranger(directions=DOWN, field_of_view=0.0)
    above = on_drone(cfg, pos=(9, 9, 2)).data.ranges[0, 0]
    box = build_spec("cf2x_L250", ["cf1"]).compile().geom("col_box:cf1")
    assert above == pytest.approx(2 - 1 - box.pos[2] - box.size[2], abs=1e-8)


# Motion capture


def capture(**options: Any) -> MotionCaptureSensorCfg:
    return MotionCaptureSensorCfg(**{"name": "mocap", "frame": DRONE} | options)


def test_an_exact_pose() -> None:
    rpy = (0.3, -0.2, 2.5)
    data = on_drone(capture(), pos=(1, 2, 3), rpy=rpy).data
    assert data.valid.all()
    np.testing.assert_allclose(data.pos, [[1, 2, 3]])
    np.testing.assert_allclose(
        rotation_matrix(data.quat[0]), rotation_matrix(quat_from_rpy(np.array(rpy))), atol=1e-9
    )


def test_noise_of_a_pose() -> None:
    cfg = capture(position=NoiseCfg(std=0.002), attitude=NoiseCfg(std=0.01))
    data = on_drone(cfg, rpy=(0, 0, 1.0), worlds=500).data
    np.testing.assert_allclose(np.std(data.pos, axis=0), 0.002, rtol=0.15)
    np.testing.assert_allclose(np.linalg.norm(data.quat, axis=1), 1.0)
    level = rotation_matrix(quat_from_rpy(np.array([0, 0, 1.0])))
    errors = level.T @ rotation_matrix(data.quat)
    vectors = np.stack([errors[:, 2, 1], errors[:, 0, 2], errors[:, 1, 0]], axis=-1)
    np.testing.assert_allclose(np.std(vectors, axis=0), 0.01, rtol=0.15)
    np.testing.assert_allclose(data.attitude_variance, 1e-4)


def test_gaps() -> None:
    data = on_drone(capture(dropout=0.3), worlds=500).data
    assert np.mean(data.valid) == pytest.approx(0.7, abs=0.07)
    assert np.isnan(data.pos[~data.valid]).all() and np.isnan(data.quat[~data.valid]).all()
    assert np.isfinite(data.pos[data.valid]).all()


# Barometer


def test_pressure_of_the_standard_atmosphere() -> None:
    """Tabulated in ISO 2533: 0 m, 1000 m, 5000 m and 15000 m."""
    table = {0.0: 101_325.0, 1000.0: 89_874.6, 5000.0: 54_019.9, 15_000.0: 12_044.6}
    for altitude, pressure in table.items():
        cfg = BarometerSensorCfg(name="b", frame=DRONE, altitude=altitude - 1.0)
        assert on_drone(cfg).data.pressure[0] == pytest.approx(pressure, abs=0.6)
    low = on_drone(BarometerSensorCfg(name="b", frame=DRONE, sea_level_pressure=1e5)).data
    assert 1e5 - low.pressure[0] == pytest.approx(1.2 * 9.81, rel=0.02)  # a metre of air


# Magnetometer, satellite navigation, optical flow


def test_the_field_in_the_axes_of_the_drone() -> None:
    field = (1e-6, 20e-6, -40e-6)
    cfg = MagnetometerSensorCfg(name="m", frame=DRONE, field=field)
    readings = on_drone(cfg, rpy=(0, 0, math.pi / 2)).data.magnetic_field  # nose to the north
    np.testing.assert_allclose(readings, [[20e-6, -1e-6, -40e-6]], atol=1e-12)
    biased = MagnetometerSensorCfg(name="m", frame=DRONE, field=(0, 0, 0), noise=NoiseCfg(bias=1))
    readings = on_drone(biased, worlds=500).data.magnetic_field
    np.testing.assert_allclose(np.std(readings, axis=0), 1.0, rtol=0.15)


@pytest.mark.parametrize("latitude", [0.0, 48.1, -89.0, 90.0])
def test_geodetic_coordinates_lead_back_to_the_same_point(latitude: float) -> None:
    """By the textbook's formula for the other direction, also far away."""
    points = np.array([[0, 0, 0], [1e4, -2e4, 3e3], [0, 0, -500.0]])
    phi, lam, h = enu_to_geodetic(points, latitude, 11.6, 500.0)
    cartesian = ecef(np.radians(phi), np.radians(lam), h)
    origin = ecef(np.radians([latitude]), np.radians([11.6]), np.array([500.0]))
    p, q = math.radians(latitude), math.radians(11.6)
    axes = np.array(
        [
            [-math.sin(q), math.cos(q), 0],
            [-math.sin(p) * math.cos(q), -math.sin(p) * math.sin(q), math.cos(p)],
            [math.cos(p) * math.cos(q), math.cos(p) * math.sin(q), math.sin(p)],
        ]
    )
    np.testing.assert_allclose((cartesian - origin) @ axes.T, points, atol=1e-4)


def ecef(phi: np.ndarray, lam: np.ndarray, h: np.ndarray) -> np.ndarray:
    a, b = 6378137.0, 6356752.314245
    n = a**2 / np.sqrt((a * np.cos(phi)) ** 2 + (b * np.sin(phi)) ** 2)
    ring = (n + h) * np.cos(phi)
    return np.stack(
        [ring * np.cos(lam), ring * np.sin(lam), (n * (b / a) ** 2 + h) * np.sin(phi)], axis=-1
    )


def test_a_fix_north_east_and_above_the_origin() -> None:
    cfg = GnssSensorCfg(name="g", frame=DRONE, latitude=48.0, longitude=11.0, altitude=500.0)
    fix = on_drone(cfg, pos=(20, 10, 30)).data
    metres_per_degree = 111_188.0  # of latitude at 48 degrees, 74 625 of longitude
    assert fix.latitude[0] == pytest.approx(48.0 + 10 / metres_per_degree, abs=1e-7)
    assert fix.longitude[0] == pytest.approx(11.0 + 20 / 74_625.0, abs=1e-7)
    assert fix.altitude[0] == pytest.approx(530.0, abs=1e-3)


def flow(vel: tuple, turn: tuple, height: float, roll: float = 0.0, **options: Any) -> np.ndarray:
    """Over the floor at a height, flying with a velocity in the world and turning."""
    cfg = OpticalFlowSensorCfg(name="flow", frame=ObjRef("site", "imu", "cf0"), **options)
    attitude = quat_from_rpy(np.array([roll, 0, 0]))
    spec = build_spec("cf2x_L250", ["cf0"], poses=[[0, 0, height, *attitude]])
    (sensor := cfg.build()).edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qvel[:6] = *vel, *turn
    mujoco.mj_forward(model, data)
    sensor.initialize(MujocoBackend(model, data))
    sensor.update(0.01)
    return sensor.data.flow[0]


def test_flow_of_flying_and_turning() -> None:
    np.testing.assert_allclose(flow((0.6, -0.4, 0.2), (0, 0, 1), 2.0), [0.3, -0.2], atol=1e-8)
    np.testing.assert_allclose(flow((0, 0, 0), (0.5, 0.3, 0), 2.0), [-0.3, 0.5], atol=1e-8)
    rolled = flow((0, 1.0, 0), (0, 0, 0), 1.5, roll=0.4)  # sees farther, and less of the velocity
    np.testing.assert_allclose(rolled, [0, math.cos(0.4) / (1.5 / math.cos(0.4))], atol=1e-8)
    assert np.isnan(flow((1, 0, 0), (0, 0, 0), 3.0, max_range=2.0)).all()


def test_the_ground_is_not_sharp_from_too_near() -> None:
    assert np.isnan(flow((1, 0, 0), (0, 0, 0), 0.07, min_range=0.08)).all()
    assert np.isfinite(flow((1, 0, 0), (0, 0, 0), 0.09, min_range=0.08)).all()


# Ready-made sensors


def test_decks_on_a_drone() -> None:
    """All of a Crazyflie in one set: at 1 m over the floor, in a room without walls."""
    flow_sensor, z_ranger = decks.flow_deck("cf0")
    cfgs = [decks.imu("cf0"), decks.barometer("cf0"), decks.multi_ranger("cf0"), z_ranger]
    sensors = SensorSet([*cfgs, flow_sensor])
    spec = build_spec("cf2x_L250", ["cf0"], poses=[[0, 0, 1.0, 0, 0, 0, 1]])
    sensors.edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sensors.initialize(MujocoBackend(model, data))
    sensors.update(0.01)
    assert np.isposinf(sensors["cf0/multi_ranger"].data.ranges).all()
    assert sensors["cf0/z_ranger"].data.ranges[0, 0] == pytest.approx(1.0, abs=0.05)
    assert sensors["cf0/barometer"].data.variance == pytest.approx(1.2**2)
    pixel = 0.71674 / 35  # rad
    assert sensors["cf0/flow"].data.variance == pytest.approx((0.2 * pixel / 0.01) ** 2)
    assert {mount.body for sensor in sensors.values() for mount in sensor.mounts} == {"drone:cf0"}


# Where sensors are, how old their readings are, and what of them can be drawn


def test_mounts_are_the_poses_in_the_body() -> None:
    tilt = (math.cos(0.2), math.sin(0.2), 0.0, 0.0)
    cfg = ImuSensorCfg(name="imu2", frame=DRONE, pos=(0.01, 0.02, 0.03), quat=tilt)
    spec = build_spec("cf2x_L250", ["cf0"])
    (sensor := cfg.build()).edit_spec(spec)
    model = spec.compile()
    sensor.initialize(MujocoBackend(model, mujoco.MjData(model)))
    (mount,) = sensor.mounts
    assert mount.body == "drone:cf0"
    np.testing.assert_allclose(mount.pos, [0.01, 0.02, 0.03])
    np.testing.assert_allclose(mount.quat, np.roll(tilt, -1))
    whole = DRONE.mount(model)
    np.testing.assert_array_equal(whole.pos, 0.0)
    np.testing.assert_array_equal(whole.quat, [0, 0, 0, 1])
    camera = ObjRef("camera", "fpv_cam", "cf0").mount(model)
    looks, up = -rotation_matrix(camera.quat)[:, 2], rotation_matrix(camera.quat)[:, 1]
    np.testing.assert_allclose([looks, up], [[1, 0, 0], [0, 0, 1]], atol=1e-12)


def test_age_of_readings() -> None:
    sensor = on_drone(capture(delay=0.2))  # has sampled once, at 10 Hz
    ages = [sensor.age]
    for _ in range(3):
        sensor.update(0.1)
        ages.append(sensor.age)
    np.testing.assert_allclose(ages, [0.0, 0.1, 0.2, 0.2])
    assert on_drone(capture()).age == 0.0


def drawn_view() -> ShapeRecorder:
    """Of the camera in the nose; nothing has to be rendered for it."""
    camera = CameraSensorCfg(name="c", camera_name="fpv_cam:cf0", debug_vis=True).build()
    model = build_spec("cf2x_L250", ["cf0"]).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    camera.initialize(MujocoBackend(model, data))
    camera.debug_vis(recorder := ShapeRecorder(model))
    assert len(recorder.arrows) == 4
    return recorder


def test_what_is_drawn() -> None:
    turn = (0.0, 0.0, math.pi / 2)

    def drawn(cfg: Any) -> ShapeRecorder:
        sensor = on_drone(cfg, pos=(1, 2, 3), rpy=turn)
        sensor.debug_vis(recorder := ShapeRecorder(sensor.backend.model))
        return recorder

    beam = drawn(ranger(directions=DOWN, debug_vis=True, by_reflectance=False))
    assert len(beam.arrows) == 1  # not all rays of the cone
    np.testing.assert_allclose(beam.arrows[0].start, [1, 2, 3])
    np.testing.assert_allclose(beam.arrows[0].end, [1, 2, 0], atol=1e-8)
    np.testing.assert_allclose(beam.spheres[0].center, [1, 2, 0], atol=1e-8)
    for arrow, expected in zip(
        drawn(capture(debug_vis=True)).arrows, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]
    ):
        direction = arrow.end - arrow.start
        np.testing.assert_allclose(direction / np.linalg.norm(direction), expected, atol=1e-8)
    north = MagnetometerSensorCfg(name="m", frame=DRONE, field=(0, 2e-5, 0), debug_vis=True)
    (field,) = drawn(north).arrows
    assert field.end[1] > field.start[1] + 1e-3
    np.testing.assert_allclose(field.end[[0, 2]], [1, 3], atol=1e-8)
    imu = ImuSensorCfg(name="i", frame=DRONE, debug_vis=True, accelerometer=NoiseCfg(bias=1.0))
    assert len(drawn(imu).arrows) == 1
    seen = drawn_view()
    looks = np.mean([edge.end - edge.start for edge in seen.arrows], axis=0)
    np.testing.assert_allclose(looks / np.linalg.norm(looks), [1, 0, 0], atol=1e-9)
    quiet = drawn(capture())
    assert not quiet.arrows and not quiet.spheres


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ranger(min_range=5.0), "ranger: min_range .* max_range, 4 m, got 5"),
        (lambda: ranger(directions=()), "ranger: directions is empty"),
        (lambda: capture(dropout=1.0), "mocap: dropout must be from 0 to less than 1, got 1"),
        (lambda: capture(frame=ObjRef("joint", "j")), "mocap: frame 'j' must be a body"),
        (
            lambda: BarometerSensorCfg(name="b", frame=DRONE, sea_level_pressure=0),
            "b: sea_level_pressure .* got 0 Pa",
        ),
        (lambda: on_drone(capture(frame=ObjRef("site", "x"))), "no site 'x'"),
        (
            lambda: GnssSensorCfg(name="g", frame=DRONE, latitude=91.0, longitude=0.0),
            "g: latitude .* -90 to 90 degrees, got 91",
        ),
        (lambda: OpticalFlowSensorCfg(name="f", frame=DRONE), "f: frame .* must be a site, not a"),
        (
            lambda: OpticalFlowSensorCfg(name="f", frame=ObjRef("site", "imu"), min_range=20.0),
            "f: min_range .* max_range, 10 m, got 20",
        ),
        (
            lambda: on_drone(BatterySensorCfg(name="b", battery=BATTERY)),
            "b: this back end has no batteries, use SimBackend",
        ),
        (lambda: BatterySensorCfg(name="b", battery=BATTERY, drone=-1), "b: drone .* got -1"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
