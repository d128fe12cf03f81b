"""Sensors over the state of drones, against MuJoCo's own over the mirror of the same state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from crazyflow_ros.drones.instruments import MULTI_RANGER
from crazyflow_ros.scene import Mirror, MirrorState, build_spec
from crazyflow_ros.scene.mirror_state import DroneIndex
from crazyflow_ros.sensors import (
    BarometerSensorCfg,
    BuiltinSensorCfg,
    GnssSensorCfg,
    GridPatternCfg,
    ImuSensorCfg,
    LidarPatternCfg,
    MagnetometerSensorCfg,
    MotionCaptureSensorCfg,
    MujocoBackend,
    ObjRef,
    RangerSensorCfg,
    RayCastSensorCfg,
)
from crazyflow_ros.sensors.state_backend import StateBackend

NAMES = ["cf0", "cf1", "cf2"]
PLACE = {"pos": [0.02, -0.03, 0.05], "quat": [0.5, 0.1, -0.7, 0.5]}
ON_DRONE = ObjRef("site", "place", "drone")
CUTOFFS = {"velocimeter": 0.6, "accelerometer": 4.0}
"""Less than some of what there is."""


@pytest.fixture(scope="module")
def alone() -> mujoco.MjModel:
    """A drone with gyroscope, accelerometer and velocimeter at a place, and what is refused."""
    spec = build_spec("cf2x_L250", ["drone"])
    spec.body("drone:drone").add_site(name="place:drone", **PLACE)
    for kind in ("gyro", "accelerometer", "velocimeter", "magnetometer"):
        cfg = BuiltinSensorCfg(
            name=kind, sensor_type=kind, obj=ON_DRONE, cutoff=CUTOFFS.get(kind, 0.0)
        )
        cfg.build().edit_spec(spec)
    return spec.compile()


@pytest.fixture(scope="module")
def state() -> MirrorState:
    rng = np.random.default_rng(1)
    quat = rng.normal(size=(3, 4))
    quat /= np.linalg.norm(quat, axis=1)[:, None]
    pos = np.array([[0.0, 0, 2], [3, 0, 1.5], [0, 4, 3]])
    motion = [rng.normal(size=(3, 3)) for _ in range(4)]
    rotors = np.zeros((3, 4))
    return MirrorState(
        0, pos, quat / np.linalg.norm(quat, axis=1)[:, None], *motion, rotors, rotors
    )


@pytest.fixture(scope="module")
def mirror(state: MirrorState) -> Mirror:
    """The drones together, with the same sensors of MuJoCo."""
    spec = build_spec("cf2x_L250", NAMES)
    for name in NAMES:
        spec.body(f"drone:{name}").add_site(name=f"place:{name}", **PLACE)
        for kind in ("gyro", "accelerometer", "velocimeter"):
            cfg = BuiltinSensorCfg(
                name=f"{kind}/{name}", sensor_type=kind, obj=ObjRef("site", "place", name),
                cutoff=CUTOFFS.get(kind, 0.0),
            )  # fmt: skip
            cfg.build().edit_spec(spec)
    mirror = Mirror(spec.compile(), NAMES)
    mirror.write(state)
    return mirror


@pytest.fixture
def backend(alone: mujoco.MjModel, mirror: Mirror, state: MirrorState) -> StateBackend:
    backend = StateBackend(alone, NAMES, MujocoBackend(mirror.model, mirror.copy_physics_data()))
    backend.show([state], [0, 1, 2])
    return backend


@pytest.mark.parametrize("kind", ["gyro", "accelerometer", "velocimeter"])
def test_motion_is_what_mujoco_reads(backend: StateBackend, mirror: Mirror, kind: str) -> None:
    sensor = BuiltinSensorCfg(name=kind, sensor_type=kind, obj=ON_DRONE).build()
    sensor.initialize(backend)
    data = mirror.copy_physics_data()
    expected = [data.sensor(f"{kind}/{name}").data for name in NAMES]
    np.testing.assert_allclose(sensor.data, expected, rtol=1e-12, atol=1e-12)


def test_frames_are_where_mujoco_has_them(backend: StateBackend, mirror: Mirror) -> None:
    together = MujocoBackend(mirror.model, mirror.copy_physics_data())
    for kind, part in (("site", "place"), ("body", "rotor2"), ("camera", "fpv_cam")):
        pos, axes = backend.frame(ObjRef(kind, part, "drone"))
        for i, name in enumerate(NAMES):
            place, directions = together.frame(ObjRef(kind, part, name))
            np.testing.assert_allclose(pos[i], place[0], atol=1e-12)
            np.testing.assert_allclose(axes[i], directions[0], atol=1e-12)


def test_rays_meet_the_scene_and_not_the_drone_itself(
    backend: StateBackend, mirror: Mirror
) -> None:
    pattern = LidarPatternCfg(samples=8, elevations=[-60, 0, 60])
    options = {"pattern": pattern, "max_distance": 20.0, "include_geom_groups": None}
    sensor = RayCastSensorCfg(name="all", frame=ON_DRONE, **options).build()
    sensor.initialize(backend)
    sensor.sense()
    together = MujocoBackend(mirror.model, mirror.copy_physics_data())
    for i, name in enumerate(NAMES):
        one = RayCastSensorCfg(name=name, frame=ObjRef("site", "place", name), **options).build()
        one.initialize(together)
        one.sense()
        assert (one.data.distances > 0).any()
        np.testing.assert_allclose(sensor.data.distances[i], one.data.distances[0], atol=1e-9)
    backend.casting[:] = [False, True, False]
    before = sensor.data.distances[1]
    sensor.sense()
    assert (sensor.data.distances[[0, 2]] == -1.0).all()
    np.testing.assert_array_equal(sensor.data.distances[1], before)


def test_rays_meet_the_scene_of_each_moment(
    alone: mujoco.MjModel, mirror: Mirror, state: MirrorState
) -> None:
    higher = np.array([0.0, 0.0, 0.25])
    moments = [replace(state, pos=state.pos + i * higher) for i in range(3)]
    model, data = mirror.model, mirror.copy_physics_data()
    index = DroneIndex(model, NAMES)

    def put(moment: MirrorState) -> None:
        index.write(moment, data)
        mujoco.mj_kinematics(model, data)

    backend = StateBackend(alone, NAMES, MujocoBackend(model, data), put=put)
    cfg = RangerSensorCfg(
        name="down", frame=ON_DRONE, directions=MULTI_RANGER, max_range=50.0, by_reflectance=False
    )
    together, single = cfg.build(), cfg.build()
    for sensor in (together, single):
        sensor.initialize(backend)
    backend.casting[:] = [True, False, True]
    backend.show(moments, [0, 1, 2])
    together.update(0.02)
    ranges = together.data.ranges.reshape(3, 3, -1)
    assert np.isinf(ranges[:, 1]).all()
    for i, moment in enumerate(moments):
        backend.show([moment], [0, 1, 2])
        single.update(0.02)
        np.testing.assert_array_equal(ranges[i], single.data.ranges)
    met = np.isfinite(ranges).all(axis=0)
    assert met[0].any()
    assert met[2].any()
    assert (np.abs(np.diff(ranges[:, met], axis=0)) > 0.05).all()  # more than the noise


CFGS = [
    ImuSensorCfg(name="imu", frame=ON_DRONE, delay=0.006),
    MagnetometerSensorCfg(name="mag", frame=ON_DRONE),
    BarometerSensorCfg(name="baro", frame=ON_DRONE, delay=0.004),
    GnssSensorCfg(name="gnss", frame=ON_DRONE, latitude=48.0, longitude=11.0),
    MotionCaptureSensorCfg(name="mocap", frame=ON_DRONE, dropout=0.3, delay=0.002),
]


@pytest.mark.parametrize("cfg", CFGS, ids=lambda cfg: cfg.name)
def test_moments_at_once_are_moments_one_by_one(
    alone: mujoco.MjModel, mirror: Mirror, state: MirrorState, cfg: Any
) -> None:
    spec = build_spec("cf2x_L250", ["drone"])
    spec.body("drone:drone").add_site(name="place:drone", **PLACE)
    cfg.build().edit_spec(spec)
    model, scene = spec.compile(), MujocoBackend(mirror.model, mirror.copy_physics_data())
    moving = [replace(state, pos=state.pos + i, vel=state.vel * i) for i in range(12)]

    def told(parts: list[int]) -> list[np.ndarray]:
        backend, sensor = StateBackend(model, NAMES[1:], scene), cfg.build()
        sensor.initialize(backend)
        rows, ages = [], []
        for i, n in zip(np.cumsum([0, *parts]), parts):
            backend.show(moving[i : i + n], [1, 2])
            if i == 8:
                sensor.reset([1])
            sensor.update(0.002)
            data = [np.asarray(value) for value in vars(sensor.data).values()]
            rows.append(
                np.hstack([v.reshape(2 * n, -1) for v in data if len(np.atleast_1d(v)) == 2 * n])
            )
            ages.append(sensor.ages)
        return [np.concatenate(rows), np.concatenate(ages)]

    for together, alone_ in zip(told([3, 5, 4]), told([1] * 12)):
        np.testing.assert_array_equal(together, alone_)


def test_what_the_state_does_not_tell_is_refused(backend: StateBackend) -> None:
    sensor = BuiltinSensorCfg(name="magnetometer", sensor_type="magnetometer", obj=ON_DRONE).build()
    with pytest.raises(ValueError, match=r"'magnetometer'.* not mjSENS_MAGNETOMETER"):
        sensor.initialize(backend)
    two = RayCastSensorCfg(name="r", frame=(ON_DRONE, ON_DRONE), pattern=GridPatternCfg())
    with pytest.raises(ValueError, match="one frame on the drone, got 2"):
        two.build().initialize(backend)
