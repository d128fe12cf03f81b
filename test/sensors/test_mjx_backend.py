"""MJX against C MuJoCo on the same scene, and what MJX refuses."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

from crazyflow_ros.scene import Mirror, MirrorState, build_spec
from crazyflow_ros.scene.frames import xyzw_to_wxyz
from crazyflow_ros.sensors import (
    BuiltinSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    ImuSensorCfg,
    LidarPatternCfg,
    MujocoBackend,
    NoiseCfg,
    ObjRef,
    RangerSensorCfg,
    RayCastSensorCfg,
    SensorCfg,
    SensorSet,
    TerrainHeightSensorCfg,
)
from crazyflow_ros.sensors.battery import BatterySensorCfg
from crazyflow_ros.sensors.mjx_backend import MjxBackend, surface_normals
from crazyflow_ros.sensors.sim_backend import SimBackend
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.actuation import Battery

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 .1"/>
    <geom type="box" size=".3 .4 .5" pos="1 .5 .5" euler="10 20 30" contype="0" conaffinity="0"/>
    <geom type="capsule" size=".1 .5" pos="-1 .5 .5" contype="0" conaffinity="0"/>
    <geom name="drum" type="cylinder" size=".1 .5" pos="0 -1 .5" group="4" contype="0"
      conaffinity="0"/>
    <body name="ball"><freejoint/>
      <geom name="ball" type="sphere" size=".1" mass="0.5"/>
      <site name="imu" pos=".05 0 .02" euler="0 20 0"/>
      <body name="ear" pos="0 0 .2"><geom type="sphere" size=".02" mass=".01" contype="0"
        conaffinity="0"/></body>
    </body>
  </worldbody>
</mujoco>"""

IMU = ObjRef("site", "imu")
BUILTIN = ("gyro", "velocimeter", "framequat", "magnetometer")
HEIGHTS = (0.099, 0.13, 0.098)
"""Of the ball in one step after the other, m: it touches, leaves and touches the floor."""


def configurations() -> list[SensorCfg]:
    return [
        *(BuiltinSensorCfg(name=kind, sensor_type=kind, obj=IMU) for kind in BUILTIN),
        TerrainHeightSensorCfg(
            name="rays", frame=(IMU, ObjRef("body", "ear")), ray_alignment="yaw", reduction="none",
            pattern=LidarPatternCfg(samples=16, elevations=(-30, 0, 20)),
        ),
        RangerSensorCfg(
            name="ranger", frame=IMU, noise=NoiseCfg(),
            directions=((0, 0, -1), (1, 0.5, 0.3), (-1, 0.5, 0.2), (0, -1, 0.3)),
        ),
        ContactSensorCfg(
            name="touch", primary=ContactMatch("geom", "ball"), reduce="mindist",
            fields=("found", "dist", "pos", "normal"), track_air_time=True, history_length=2,
        ),
    ]  # fmt: skip


def mjx_stages(model: mjx.Model, data: mjx.Data) -> mjx.Data:
    """As far as sensors of positions and velocities need them."""
    for stage in (
        mjx.kinematics, mjx.com_pos, mjx.camlight, mjx.collision, mjx.sensor_pos, mjx.com_vel,
        mjx.sensor_vel,
    ):  # fmt: skip
        data = stage(model, data)
    return data


@pytest.fixture(scope="module")
def both() -> tuple[SensorSet, SensorSet]:
    """The same two worlds over the same steps, over C and over MJX."""
    over_c, over_mjx = SensorSet(configurations()), SensorSet(configurations())
    spec = mujoco.MjSpec.from_string(SCENE)
    over_c.edit_spec(spec)
    model = spec.compile()
    worlds = [mujoco.MjData(model) for _ in range(2)]
    mjx_model = mjx.put_model(model)
    batch = jax.tree.map(lambda *x: jnp.stack(x), *(mjx.put_data(model, data) for data in worlds))
    over_c.initialize(MujocoBackend(model, worlds))
    over_mjx.initialize(backend := MjxBackend(model, mjx_model, batch))
    stages = jax.jit(jax.vmap(mjx_stages, in_axes=(None, 0)))
    for height in HEIGHTS:
        for world, data in enumerate(worlds):
            data.qpos[:3] = 0.1, 0.2, height + world
            data.qpos[3:7] = xyzw_to_wxyz(np.array([0.1, 0.2, 0.3, 0.927]))
            data.qvel[:] = [0.3, 0.1 - world, world, 0.5, -0.4, 0.7]
            mujoco.mj_forward(model, data)
        positions, velocities = (
            jnp.stack([jnp.asarray(getattr(data, name)) for data in worlds])
            for name in ("qpos", "qvel")
        )
        backend.data = stages(mjx_model, backend.data.replace(qpos=positions, qvel=velocities))
        over_c.update(0.01)
        over_mjx.update(0.01)
    over_c.sense()
    over_mjx.sense()
    return over_c, over_mjx


Both = tuple[SensorSet, SensorSet]


def test_builtin_sensors_are_equal(both: Both) -> None:
    for name in BUILTIN:
        a, b = (sensors[name].data for sensors in both)
        assert isinstance(b, jax.Array) and a.shape == b.shape and a.any()
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_rays_are_equal(both: Both) -> None:
    a, b = (sensors["rays"].data for sensors in both)
    assert isinstance(b.distances, jax.Array)
    assert 20 < (a.distances > 0).sum() < a.distances.size
    for field in (
        "distances", "hit_pos_w", "normals_w", "frame_pos_w", "frame_quat_w", "pos_w", "quat_w",
        "heights",
    ):  # fmt: skip
        np.testing.assert_allclose(getattr(b, field), getattr(a, field), atol=1e-4)


SOLIDS = """
<mujoco>
  <worldbody>
    <geom type="plane" size="0 0 .1" pos="0 0 -1" euler="5 10 0"/>
    <geom type="sphere" size=".3" pos="1 0 0"/>
    <geom type="capsule" size=".2 .3" pos="-1 0 0" euler="40 20 0"/>
    <geom type="ellipsoid" size=".2 .3 .4" pos="0 1 0" euler="0 30 50"/>
    <geom type="box" size=".2 .3 .4" pos="0 -1 0" euler="10 20 30"/>
    <geom type="box" size="9 9 9"/>
  </worldbody>
</mujoco>"""


def test_cones_are_equal(both: Both) -> None:
    over_c, over_mjx = (sensors["ranger"].data for sensors in both)
    assert np.isfinite(over_c.ranges).sum() > 2
    np.testing.assert_allclose(over_mjx.ranges, over_c.ranges, atol=1e-4)


def test_normals_of_all_shapes_are_those_of_mujocos_rays() -> None:
    """Also from within: all rays start in a large box."""
    model = mujoco.MjModel.from_xml_string(SOLIDS)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    rng = np.random.default_rng(0)
    starts, ways = rng.uniform(-1.5, 1.5, (300, 3)), rng.normal(size=(300, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    distances, geoms, normals = np.zeros(300), np.zeros(300, np.int32), np.zeros((300, 3))
    for i, (start, way) in enumerate(zip(starts, ways)):
        distances[i] = mujoco.mj_ray(
            model, data, start, way, None, True, -1, geoms[i : i + 1], normals[i]
        )
    assert set(geoms) == set(range(6))
    world: Any = data
    found = surface_normals(model, world, geoms, starts + distances[:, None] * ways)
    np.testing.assert_allclose(found, normals, atol=1e-4)
    nothing = surface_normals(model, world, np.array([-1]), np.zeros((1, 3)))
    np.testing.assert_array_equal(nothing, 0.0)


def test_contacts_are_equal(both: Both) -> None:
    a, b = (sensors["touch"].data for sensors in both)
    np.testing.assert_array_equal(b.found, [[1], [0]])
    np.testing.assert_allclose(b.last_air_time, [[0.02], [0]], rtol=1e-6)
    np.testing.assert_allclose(b.dist_history, [[[-0.002, 0]], [[0, 0]]], atol=1e-6)
    for field in vars(a):
        if getattr(a, field) is None:
            assert getattr(b, field) is None
        else:
            np.testing.assert_allclose(getattr(b, field), getattr(a, field), atol=1e-5)


@pytest.mark.parametrize("reduce", ["maxforce", "netforce"])
def test_forces_are_equal(both: Both, reduce: Any) -> None:
    """Of the solution that C MuJoCo has found, in bodies and all below them."""
    model = both[0]["rays"].backend.model
    worlds = [mujoco.MjData(model) for _ in range(2)]
    for data, height in zip(worlds, (0.098, 0.0995)):
        data.qpos[:3], data.qvel[:3] = (0.1, 0.2, height), (0.3, 0.2, -0.1)
        mujoco.mj_forward(model, data)
    batch = jax.tree.map(lambda *x: jnp.stack(x), *(mjx.put_data(model, data) for data in worlds))
    fields: tuple[str, ...] = ("found", "force", "torque", "pos")
    cfg = ContactSensorCfg(
        name="t", primary=ContactMatch("subtree", ("ball", "ear")), fields=fields, reduce=reduce,
        secondary=ContactMatch("geom", "floor"), global_frame=True,
    )  # fmt: skip
    (in_c := cfg.build()).initialize(MujocoBackend(model, worlds))
    (in_mjx := cfg.build()).initialize(MjxBackend(model, mjx.put_model(model), batch))
    np.testing.assert_array_equal(in_c.data.found, [[1, 0], [1, 0]])
    assert (in_c.data.force[:, 0, 2] < -1.0).all()
    for field in fields:
        a, b = getattr(in_c.data, field), getattr(in_mjx.data, field)
        assert isinstance(b, jax.Array)
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


def test_pictures_are_drawn_from_the_poses_of_mjx(both: Both) -> None:
    backends = [sensors["rays"].backend for sensors in both]
    for world in range(2):
        in_c, in_mjx = (backend.poses(world).geom_xpos for backend in backends)
        np.testing.assert_allclose(in_mjx, in_c, atol=1e-6)


def test_a_reset_is_of_the_given_worlds(both: Both) -> None:
    touch = both[1]["touch"]
    assert touch.data.current_air_time.any() and touch.data.last_air_time[0, 0]
    touch.reset([0])
    np.testing.assert_allclose(touch.data.last_air_time, [[0], [0]])
    np.testing.assert_allclose(touch.data.current_air_time, [[0], [0.03]], rtol=1e-6)


# A simulation of drones


def imu(drone: str) -> ImuSensorCfg:
    """Away from the centre, and mounted askew."""
    return ImuSensorCfg(
        name="imu", frame=ObjRef("xbody", "drone", drone), pos=(0.03, -0.02, 0.01),
        quat=(0.8, 0.6, 0, 0), gyro=NoiseCfg(), accelerometer=NoiseCfg(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def swarm() -> tuple[Sim, SensorSet]:
    """Two worlds with a drone."""
    sim = Sim(2, 1, control="rotor_vel")
    sensors = SensorSet(
        [
            BuiltinSensorCfg(
                name="where", sensor_type="framepos", obj=ObjRef("xbody", "drone", "0")
            ),
            imu("0"),
            BuiltinSensorCfg(
                name="speed", sensor_type="velocimeter", obj=ObjRef("site", "range", "0"),
                cutoff=0.4,
            ),
            BuiltinSensorCfg(name="clock", sensor_type="clock"),
            TerrainHeightSensorCfg(
                name="height", frame=ObjRef("site", "range", "0"), include_geom_groups=(0, 3),
                pattern=LidarPatternCfg(samples=1, azimuth_range=(0, 0)),
            ),
            ContactSensorCfg(
                name="touch", primary=ContactMatch("subtree", "drone", "0"), reduce="mindist",
                fields=("found", "dist", "normal"), track_air_time=True,
            ),
        ]
    )  # fmt: skip
    sensors.edit_spec(sim.spec)
    crane = sim.spec.worldbody.add_body(name="crane", mocap=True, pos=(0, 0, 9))
    hook = crane.add_body(name="hook", pos=(1, 0, 0))
    hook.add_geom(name="hook", size=(0.1, 0, 0))
    sim.build_mjx()
    sensors.initialize(SimBackend(sim))
    return sim, sensors


def test_frames_of_a_sim_are_those_of_mujoco(swarm: tuple[Sim, SensorSet]) -> None:
    """Also of what mocap bodies carry, drones and others."""
    sim, _ = swarm
    before, data_before = sim.data, sim.mjx_data
    drone, crane = (sim.mj_model.body(name).mocapid.item() for name in ("drone:0", "crane"))
    rng = np.random.default_rng(3)
    pos, quat = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 2, 4))
    quat /= np.linalg.norm(quat, axis=2, keepdims=True)
    sim.mjx_data = data_before.replace(
        mocap_pos=data_before.mocap_pos.at[:, crane].set(pos[:, crane]),
        mocap_quat=data_before.mocap_quat.at[:, crane].set(2 * xyzw_to_wxyz(quat[:, crane])),
    )
    states = sim.data.states
    sim.data = sim.data.replace(
        states=states.replace(
            pos=jnp.asarray(pos[:, drone, None], states.pos.dtype),
            quat=jnp.asarray(quat[:, drone, None], states.quat.dtype),
        )
    )
    sim.sync()
    for world in range(2):
        data = mujoco.MjData(sim.mj_model)
        data.mocap_pos[:], data.mocap_quat[:] = pos[world], xyzw_to_wxyz(quat[world])
        mujoco.mj_kinematics(sim.mj_model, data)
        mujoco.mj_comPos(sim.mj_model, data)
        for name in ("xpos", "xmat", "geom_xpos", "site_xpos", "subtree_com"):
            found = np.asarray(getattr(sim.mjx_data, name)[world])
            expected = getattr(data, name).reshape(found.shape)
            np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=name)
    sim.data, sim.mjx_data = before, data_before


def test_what_a_mocap_body_carries_touches_drones_where_it_is(swarm: tuple[Sim, SensorSet]) -> None:
    sim, _ = swarm
    data_before = sim.mjx_data
    crane, hook = sim.mj_model.body("crane").mocapid.item(), sim.mj_model.geom("hook").id
    drone = sim.mj_model.body("drone:0").mocapid.item()
    hooked = data_before.mocap_pos[:, drone] - jnp.array([1.0, 0.0, 0.0])
    pos = hooked.at[1, 2].add(0.5)  # above the drone in the second world
    sim.mjx_data = data_before.replace(mocap_pos=data_before.mocap_pos.at[:, crane].set(pos))
    for touching, geoms in (
        (sim.contacts("hook"), sim.contact_slots().geoms),
        (sim.mjx_data._impl.contact.dist < 0, sim.mjx_data._impl.contact.geom),
    ):
        np.testing.assert_array_equal((touching & (geoms == hook).any(-1)).any(-1), [True, False])
    sim.mjx_data = data_before


def test_the_clock_of_a_sim(swarm: tuple[Sim, SensorSet]) -> None:
    sim, sensors = swarm
    before = sim.data
    for expected in (0.2, 0.4):
        sim.step(round(0.2 * sim.freq))
        sensors["clock"].update(0.2)
        np.testing.assert_allclose(sensors["clock"].data, np.full((2, 1), expected), rtol=1e-6)
        np.testing.assert_allclose(sim.time, expected, rtol=1e-6)
    sim.data = before


def test_a_sim_is_read_as_it_is(swarm: tuple[Sim, SensorSet]) -> None:
    sim, sensors = swarm
    pos = jnp.zeros((2, 1, 3)).at[:, 0, 2].set(jnp.array([1.0, 2.0]))
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=pos))
    sensors.sense()
    np.testing.assert_allclose(sensors["where"].data, pos[:, 0], atol=1e-6)
    below = 0.003
    heights = [[1.0 - below], [2.0 - below]]
    np.testing.assert_allclose(sensors["height"].data.distances, heights, atol=1e-5)
    np.testing.assert_allclose(sensors["height"].data.heights, heights, atol=1e-5)


def test_inertial_sensors_of_a_sim_are_those_of_mujoco(swarm: tuple[Sim, SensorSet]) -> None:
    """Of a drone with a free joint that moves as the second world's."""
    sim, sensors = swarm
    before, rng = sim.data, np.random.default_rng(0)
    quat = np.array([0.1, -0.2, 0.3, 0.927]) / np.linalg.norm([0.1, -0.2, 0.3, 0.927])
    vel, turn, acc, ang_acc = rng.normal(size=(4, 3))
    states, rates = sim.data.states, sim.data.states_deriv

    def second(field: jax.Array, value: np.ndarray) -> jax.Array:
        return field.at[1, 0].set(value)

    sim.data = sim.data.replace(
        states=states.replace(
            quat=second(states.quat, quat), vel=second(states.vel, vel),
            ang_vel=second(states.ang_vel, turn),
        ),
        states_deriv=rates.replace(
            acc=second(jnp.zeros_like(rates.acc), acc),
            ang_acc=second(jnp.zeros_like(rates.ang_acc), ang_acc),
        ),
    )  # fmt: skip
    spec = build_spec(sim.drone, ["cf0"])
    for cfg in (
        imu("cf0"),
        BuiltinSensorCfg(
            name="speed", sensor_type="velocimeter", obj=ObjRef("site", "range", "cf0"), cutoff=0.4
        ),
    ):
        cfg.build().edit_spec(spec)
    mirror, none = Mirror(spec.compile(), ["cf0"]), np.zeros((1, 4))
    mirror.write(
        MirrorState(0, none[:, :3], quat[None], vel[None], turn[None], acc[None], ang_acc[None],
                    none, none)
    )  # fmt: skip
    data = mirror.copy_physics_data()
    for name in ("imu", "speed"):
        sensors[name].update(0.01)
    reading = sensors["imu"].data
    for values, name in (
        (reading.angular_velocity, "imu/gyro"),
        (reading.linear_acceleration, "imu/accelerometer"),
        (sensors["speed"].data, "speed"),
    ):
        np.testing.assert_allclose(values[1], data.sensor(name).data, rtol=1e-4, atol=1e-5)
    at_rest = reading.linear_acceleration[0]
    np.testing.assert_allclose(np.linalg.norm(at_rest), 9.81, rtol=1e-4)
    assert np.count_nonzero(np.abs(sensors["speed"].data[1]) < 0.4) in (1, 2)  # the rest is cut off
    sim.data = before


def test_contacts_of_a_sim_without_forces(swarm: tuple[Sim, SensorSet]) -> None:
    sim, sensors = swarm
    before, touch = sim.data, sensors["touch"]
    sphere = sim.mj_model.geom("col_sphere:0")
    height = sphere.size[0] - sphere.pos[2] - 0.02
    pos = jnp.zeros((2, 1, 3)).at[:, 0, 2].set(jnp.array([height, 1.0]))
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=pos))
    touch.update(0.1)
    reading = touch.data
    np.testing.assert_array_equal(reading.found, [[1], [0]])
    np.testing.assert_allclose(reading.dist, [[-0.02], [0]], atol=1e-6)
    np.testing.assert_allclose(reading.normal, [[[0, 0, -1]], [[0, 0, 0]]], atol=1e-6)
    np.testing.assert_allclose(reading.current_contact_time, [[0.1], [0]], rtol=1e-6)
    assert touch.compute_first_contact(0.1)[0, 0] and touch.compute_first_air(0.1)[1, 0]
    sim.data = before


def test_a_battery_under_load(swarm: tuple[Sim, SensorSet]) -> None:
    """Power is voltage times current, and resistance takes the rest of the voltage."""
    sim, _ = swarm
    stage = Battery(0.25, 4.2, knee=(0.02, 4.0), nominal=(0.2, 3.6), resistance=0.3)
    sensor = BatterySensorCfg(name="battery", battery=stage).build()
    with pytest.raises(ValueError, match="battery: the pipeline has no stage Battery"):
        sensor.initialize(SimBackend(sim))
    before, speeds = sim.data, np.array([0.0, 15_000.0])  # rpm
    states = sim.data.states.replace(
        rotor_vel=jnp.ones_like(sim.data.states.rotor_vel) * speeds[:, None, None]
    )
    sim.data = stage.begin(sim.data).replace(states=states)
    sim.data.plugins["battery"] += 0.1
    sensor.initialize(SimBackend(sim))
    sensor.update(0.1)
    reading = sensor.data
    np.testing.assert_allclose(reading.charge, 0.15, rtol=1e-6)
    np.testing.assert_allclose(reading.percentage, 0.6, rtol=1e-6)
    source = np.asarray(stage.voltage(jnp.array(0.1)))
    np.testing.assert_allclose(reading.voltage + 0.3 * reading.current, source, rtol=1e-5)
    t0, t1, t2 = np.asarray(sim.data.params.rpm2torque).reshape(-1, 3)[0]
    torque = t0 + t1 * speeds + t2 * speeds**2
    power = 4 * speeds * math.tau / 60 * torque / stage.efficiency
    np.testing.assert_allclose(reading.voltage * reading.current, power, rtol=1e-5, atol=1e-9)
    assert power[1] > 1.0
    with pytest.raises(ValueError, match="battery: drone must be from 0 to 0, got 1"):
        BatterySensorCfg(name="battery", battery=stage, drone=1).build().initialize(SimBackend(sim))
    sim.data = before


# Refusals


def test_what_mjx_cannot_do_is_refused_with_a_reason(swarm: tuple[Sim, SensorSet]) -> None:
    model = mujoco.MjModel.from_xml_string(SCENE)
    data: Any = None
    backend = MjxBackend(model, None, data)
    all_groups: dict[str, Any] = {"frame": IMU, "include_geom_groups": None}
    with pytest.raises(ValueError, match=r"pass through cylinders, .*: drum\. Leave"):
        RayCastSensorCfg(name="r", **all_groups).build().initialize(backend)
    rock = """<mujoco>
      <asset><material name="m"/><mesh name="r" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
      <worldbody><geom name="rock" type="mesh" mesh="r"/><site name="imu"/></worldbody>
    </mujoco>"""
    over_rock = MjxBackend(mujoco.MjModel.from_xml_string(rock), None, data)
    RayCastSensorCfg(name="r", frame=IMU).build().initialize(over_rock)  # without normals
    with pytest.raises(ValueError, match=r"h: MJX has no surface normals of meshes: rock\. Leave"):
        TerrainHeightSensorCfg(name="h", frame=IMU).build().initialize(over_rock)

    of_sim = SimBackend(swarm[0])
    sphere = ContactMatch("geom", "col_sphere", "0")
    for options, what in (
        ({}, "t: force: contacts of this back end have no forces, only found, dist"),
        ({"fields": ("found",)}, "t: reduce 'maxforce': contacts of this back end have no forces"),
    ):
        with pytest.raises(ValueError, match=what):
            ContactSensorCfg(name="t", primary=sphere, **options).build().initialize(of_sim)
    spec = swarm[0].spec.copy()
    body = BuiltinSensorCfg(name="b", sensor_type="framelinvel", obj=ObjRef("xbody", "drone", "0"))
    joint = BuiltinSensorCfg(name="j", sensor_type="jointvel", obj=ObjRef("joint", "anchor"))
    for cfg, what in (
        (body, "sensor 'b': the mocap body 'drone:0' has no velocity"),
        (joint, "sensor 'j': a Sim has no velocities and forces in MuJoCo"),
    ):
        (built := cfg.build()).edit_spec(spec)
        of_sim.model = spec.compile()
        with pytest.raises(ValueError, match=what):
            built.initialize(of_sim)
