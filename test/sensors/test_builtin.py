"""MuJoCo's own sensors through the framework, and the life cycle of all sensors."""

from __future__ import annotations

from inspect import signature
from typing import get_args

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import build_spec
from crazyflow_ros.sensors import (
    BuiltinSensor,
    BuiltinSensorCfg,
    CameraSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    MujocoBackend,
    ObjRef,
    PinholeCameraPatternCfg,
    RayCastSensorCfg,
    SensorSet,
)
from crazyflow_ros.sensors.builtin import SensorType

ARM = """
<mujoco>
  <option magnetic="2e-5 0 -4e-5"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="arm" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" range="-45 45" limited="true"/>
      <geom name="rod" type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass="1"/>
      <site name="tip" pos=".4 .1 0" euler="20 0 40"/>
      <camera name="eye" pos=".2 0 0"/>
    </body>
  </worldbody>
  <tendon><fixed name="cable"><joint joint="hinge" coef="0.3"/></fixed></tendon>
  <actuator>
    <motor name="motor" joint="hinge"/><motor name="winch" tendon="cable"/>
  </actuator>
  <sensor><gyro name="of the file" site="tip"/></sensor>
</mujoco>"""

OBJECTS = {
    "joint": ObjRef("joint", "hinge"),
    "tendon": ObjRef("tendon", "cable"),
    "actuator": ObjRef("actuator", "motor"),
    "subtree": ObjRef("body", "arm"),
    "frame": ObjRef("camera", "eye"),
}


def obj_for(sensor_type: str) -> ObjRef | None:
    if sensor_type in ("clock", "e_potential", "e_kinetic"):
        return None
    fits = (ref for start, ref in OBJECTS.items() if sensor_type.startswith(start))
    return next(fits, ObjRef("site", "tip"))


@pytest.fixture(scope="module")
def arms() -> tuple[SensorSet, MujocoBackend]:
    """One sensor of each type, in two worlds that move."""
    sensors = SensorSet(
        BuiltinSensorCfg(name=kind, sensor_type=kind, obj=obj_for(kind))
        for kind in get_args(SensorType)
    )
    spec = mujoco.MjSpec.from_string(ARM)
    sensors.edit_spec(spec)
    model = spec.compile()
    worlds = [mujoco.MjData(model) for _ in range(2)]
    sensors.initialize(backend := MujocoBackend(model, worlds))
    for speed, data in zip((1.0, -2.0), worlds):
        data.qvel[0] = speed
        data.ctrl[:] = 0.5, 0.7
        mujoco.mj_step(model, data, 20)
        mujoco.mj_forward(model, data)
    return sensors, backend


def test_all_types_read_what_mujoco_computes(arms: tuple[SensorSet, MujocoBackend]) -> None:
    sensors, backend = arms
    assert len(get_args(SensorType)) == 34
    for kind in get_args(SensorType):
        direct = np.stack([data.sensor(kind).data for data in backend.data])
        np.testing.assert_array_equal(sensors[kind].data, direct)
        assert sensors[kind].data.any() or kind.startswith("jointlimit")
    assert sensors["framequat"].data.shape == (2, 4)
    assert sensors["accelerometer"].data.shape == (2, 3)
    assert sensors["clock"].data.shape == (2, 1)
    np.testing.assert_allclose(sensors["clock"].data, 20 * 0.002)
    np.testing.assert_allclose(
        sensors["framequat"].data[0], mat2quat(backend.data[0].camera("eye").xmat), atol=1e-12
    )
    field = backend.data[1].site("tip").xmat.reshape(3, 3).T @ [2e-5, 0, -4e-5]
    np.testing.assert_allclose(sensors["magnetometer"].data[1], field)
    assert sensors["jointactuatorfrc"].data[0] == pytest.approx(0.5 + 0.3 * 0.7)
    assert sensors["tendonpos"].data[1] == 0.3 * sensors["jointpos"].data[1]


def mat2quat(matrix: np.ndarray) -> np.ndarray:
    mujoco.mju_mat2Quat(quat := np.empty(4), matrix)
    return quat


def test_what_the_model_has_already_is_wrapped(arms: tuple[SensorSet, MujocoBackend]) -> None:
    sensors, backend = arms
    assert isinstance(sensors["of the file"], BuiltinSensor)
    np.testing.assert_array_equal(sensors["of the file"].data, sensors["gyro"].data)
    with pytest.raises(KeyError, match=r"there is no sensor 'x', only accelerometer, "):
        sensors["x"]
    with pytest.raises(ValueError, match="the model has no sensor 'x'"):
        BuiltinSensor.from_existing("x").initialize(backend)


def simple(**options: object) -> tuple[BuiltinSensor, mujoco.MjModel, mujoco.MjData]:
    """A sensor of the arm, of its hinge's position unless told otherwise."""
    options = {"name": "s", "sensor_type": "jointpos", "obj": OBJECTS["joint"]} | options
    sensor = BuiltinSensorCfg(**options).build()
    spec = mujoco.MjSpec.from_string(ARM)
    sensor.edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    sensor.initialize(MujocoBackend(model, data))
    return sensor, model, data


def test_readings_are_kept_until_update_or_reset() -> None:
    sensor, model, data = simple()
    data.qpos[0] = 0.1
    mujoco.mj_forward(model, data)
    first = sensor.data
    data.qpos[0] = 0.2
    mujoco.mj_forward(model, data)
    assert sensor.data is first  # also not a view that has changed
    assert first == 0.1
    sensor.update(0.01)
    assert sensor.data == 0.2
    data.qpos[0] = 0.3
    mujoco.mj_forward(model, data)
    sensor.reset([0])
    assert sensor.data == 0.3


def test_a_cutoff_limits_the_absolute_value() -> None:
    sensor, model, data = simple(sensor_type="jointvel", cutoff=0.5)
    for velocity, reading in ((-3.0, -0.5), (0.4, 0.4)):
        data.qvel[0] = velocity
        mujoco.mj_forward(model, data)
        sensor.update(0.0)
        assert sensor.data == reading


def test_body_is_the_inertial_frame_and_xbody_the_own() -> None:
    for kind, expected in (("body", 0.2), ("xbody", 0.0)):
        sensor, model, data = simple(sensor_type="framepos", obj=ObjRef(kind, "arm"))
        mujoco.mj_forward(model, data)
        assert sensor.data[0, 0] == pytest.approx(expected)


def test_measured_in_the_frame_of_another_object() -> None:
    sensor, model, data = simple(
        sensor_type="framepos", obj=ObjRef("site", "tip"), ref=ObjRef("xbody", "arm")
    )
    data.qpos[0] = 0.5
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(sensor.data, [[0.4, 0.1, 0]], atol=1e-12)


def test_objects_of_a_drone() -> None:
    assert ObjRef("site", "imu", entity="cf1").prefixed_name() == "imu:cf1"
    spec = build_spec("cf2x_L250", ["cf0", "cf1"])
    ref = ObjRef("site", "imu", entity="cf1")
    sensor = BuiltinSensorCfg(name="v", sensor_type="velocimeter", obj=ref).build()
    sensor.edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    sensor.initialize(MujocoBackend(model, data))
    data.joint("free:cf1").qvel[:3] = 1, 2, 3
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(sensor.data, [[1, 2, 3]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensor_type": "sonar"}, "there is no sensor_type 'sonar', only accelerometer"),
        ({"sensor_type": "gyro"}, "obj of 'gyro' 'hinge' must be a site, not a joint"),
        ({"sensor_type": "clock"}, "'clock' needs no obj"),
        ({"obj": None}, "'jointpos' needs an obj of type joint"),
        ({"ref": ObjRef("site", "tip")}, "'jointpos' takes no ref"),
        ({"cutoff": -1.0}, "cutoff must not be negative, got -1.0"),
        ({"name": "of the file"}, "already has a sensor 'of the file'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simple(**options)


def test_motion_of_a_mocap_body_is_refused_as_it_would_read_zero() -> None:
    spec = build_spec("cf2x_L250", ["0"], mocap=True)
    site = ObjRef("site", "imu", entity="0")
    for kind in ("gyro", "accelerometer", "framequat"):
        BuiltinSensorCfg(name=kind, sensor_type=kind, obj=site).build().edit_spec(spec)
    model = spec.compile()
    backend = MujocoBackend(model, mujoco.MjData(model))
    for kind in ("gyro", "accelerometer"):
        with pytest.raises(ValueError, match=rf"'{kind}': the mocap body 'drone:0' has no veloc"):
            BuiltinSensor.from_existing(kind).initialize(backend)
    BuiltinSensor.from_existing("framequat").initialize(backend)


def test_misuse_is_told() -> None:
    spec = mujoco.MjSpec.from_string(ARM)
    model = spec.compile()
    with pytest.raises(RuntimeError, match=r"BuiltinSensor: call initialize\(\) first"):
        BuiltinSensor.from_existing("of the file").data  # noqa: B018
    with pytest.raises(RuntimeError, match="initialize the sensors before they sense"):
        SensorSet([]).sense()
    with pytest.raises(ValueError, match="either a configuration or the name"):
        BuiltinSensor()
    with pytest.raises(ValueError, match="at least one world"):
        MujocoBackend(model, [])
    other = mujoco.MjData(mujoco.MjModel.from_xml_string("<mujoco/>"))
    with pytest.raises(ValueError, match="data of world 1 belong to another model"):
        MujocoBackend(model, [mujoco.MjData(model), other])


def test_two_sensors_of_one_name_are_refused() -> None:
    cfg = BuiltinSensorCfg(name="t", sensor_type="clock")
    with pytest.raises(ValueError, match="two sensors are called 't'"):
        SensorSet([cfg, cfg])


# The accelerometer, at an arm of 0.1 m from the centre of mass


def accelerometer(
    speed: float = 0.0, height: float = 1.0, push: float = 0.0, seconds: float = 0.0
) -> np.ndarray:
    model = mujoco.MjModel.from_xml_string("""
        <mujoco><worldbody><geom type="plane" size="5 5 .1"/>
          <body name="box"><freejoint/>
            <geom type="box" size=".1 .1 .1" mass="2"/><site name="imu" pos=".1 0 0"/>
          </body></worldbody>
          <sensor><accelerometer name="acc" site="imu"/></sensor></mujoco>""")
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[5] = height, speed
    data.xfrc_applied[1, 2] = push
    mujoco.mj_step(model, data, int(seconds / model.opt.timestep))
    mujoco.mj_forward(model, data)
    sensor = BuiltinSensor.from_existing("acc")
    sensor.initialize(MujocoBackend(model, data))
    return sensor.data[0]


def test_accelerometer_in_free_fall_hover_spin_and_on_the_floor() -> None:
    np.testing.assert_allclose(accelerometer(), [0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(accelerometer(push=2 * 9.81), [0, 0, 9.81], atol=1e-12)
    np.testing.assert_allclose(accelerometer(speed=3.0), [-0.1 * 9.0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(accelerometer(height=0.1, seconds=2.0), [0, 0, 9.81], atol=1e-4)


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (BuiltinSensorCfg, "name sensor_type obj ref cutoff"),
        (
            CameraSensorCfg,
            "name camera_name parent_body pos quat fovy width height data_types use_textures "
            "use_shadows enabled_geom_groups orthographic clone_data",
        ),
        (
            ContactSensorCfg,
            "name primary secondary fields reduce num_slots secondary_policy track_air_time "
            "global_frame history_length debug",
        ),
        (ContactMatch, "mode pattern entity exclude"),
        (GridPatternCfg, "size resolution direction"),
        (PinholeCameraPatternCfg, "width height fovy camera_name"),
        (ObjRef, "type name entity"),
        (
            RayCastSensorCfg,
            "name frame pattern ray_alignment max_distance exclude_parent_body include_geom_groups",
        ),
        (
            RayCastSensorCfg.VizCfg,
            "hit_color miss_color hit_sphere_color hit_sphere_radius show_rays show_normals "
            "normal_color normal_length",
        ),
    ],
)
def test_arguments_come_in_the_order_of_mjlab(cls: type, names: str) -> None:
    """As its documents have them, but for debug_vis, which goes by name in all of ours."""
    parameters = signature(cls).parameters.values()
    given = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert given[: len(names.split())] == names.split()
