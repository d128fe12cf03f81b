"""Cameras: where points appear, distances, identities, and what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
import pytest
from images import REQUIRED, need_images
from paths import ROOT

from crazyflow_ros import opengl
from crazyflow_ros.scene import RenderingUnavailable
from crazyflow_ros.sensors import (
    CameraSensor,
    CameraSensorCfg,
    Intrinsics,
    MujocoBackend,
    ObjRef,
    PinholeCameraPatternCfg,
    RayCastSensorCfg,
    SensorContext,
    SensorSet,
)

SCENE = """
<mujoco>
  <statistic extent="2" center="0 0 0"/>
  <visual><map znear="0.01" zfar="50"/><quality offsamples="0"/></visual>
  <asset>
    <texture name="t" type="2d" builtin="flat" rgb1="0 0 1" width="8" height="8"/>
    <material name="blue" texture="t" rgba="1 1 1 1"/>
  </asset>
  <worldbody>
    <light pos="0 0 5" dir="0 0 -1" directional="true" castshadow="true"/>
    <camera name="down" pos="0 0 2" fovy="60" resolution="64 48"/>
    <camera name="lens" pos="0 0 2" sensorsize="0.02 0.01" focal="0.01 0.012"
      principal="0.002 0.001" resolution="120 90"/>
    <geom name="floor" type="plane" size="1 1 .1" rgba=".5 .5 .5 1"/>
    <geom name="ball" type="sphere" size=".02" pos=".3 .2 1" rgba="1 0 0 1"/>
    <geom name="box" type="box" size=".1 .1 .1" pos="-.3 .1 .1" euler="20 30 0" material="blue"/>
    <geom name="hidden" type="sphere" size=".2" pos=".3 -.4 .5" group="4"/>
    <site name="marker" size=".2" pos="-.3 -.4 .5"/>
    <body name="cart" pos="0 0 1.5"><joint type="slide" axis="1 0 0"/>
      <geom type="sphere" size=".01" mass="1" group="5"/></body>
  </worldbody>
  <sensor><rangefinder name="laser" site="marker"/></sensor>
</mujoco>"""


@pytest.fixture(scope="module")
def drawn() -> Iterator[tuple[SensorSet, MujocoBackend]]:
    """Several cameras, and rays through the pixels of two of them, in two worlds."""
    need_images()
    every = ("rgb", "depth", "segmentation")
    sensors = SensorSet(
        [
            CameraSensorCfg(name="plain", camera_name="down", data_types=every),
            CameraSensorCfg(name="odd", camera_name="lens", width=120, height=90, data_types=every),
            CameraSensorCfg(name="small", camera_name="down", width=32, height=24),
            CameraSensorCfg(name="bare", camera_name="down", use_textures=False),
            CameraSensorCfg(name="shady", camera_name="down", use_shadows=True),
            CameraSensorCfg(
                name="all groups", camera_name="down", enabled_geom_groups=(0, 4),
                data_types=("segmentation",),
            ),
            CameraSensorCfg(
                name="on cart", parent_body="cart", pos=(0.1, 0, 0.5), fovy=60, width=64,
                height=48, data_types=("depth",), quat=(0.966, 0.259, 0, 0), clone_data=True,
            ),
            CameraSensorCfg(
                name="flat", pos=(0, 0, 2), orthographic=True, fovy=1.2,
                data_types=("depth", "segmentation"),
            ),
            RayCastSensorCfg(
                name="rays of plain", frame=ObjRef("camera", "down"),
                pattern=PinholeCameraPatternCfg(width=160, height=120, fovy=60),
            ),
            RayCastSensorCfg(
                name="rays of odd", frame=ObjRef("camera", "lens"),
                pattern=PinholeCameraPatternCfg.from_mujoco_camera("lens"),
            ),
        ]
    )  # fmt: skip
    spec = mujoco.MjSpec.from_string(SCENE)
    sensors.edit_spec(spec)
    model = spec.compile()
    worlds = [mujoco.MjData(model) for _ in range(2)]
    worlds[1].qpos[0] = 0.2
    for data in worlds:
        mujoco.mj_forward(model, data)
    sensors.initialize(backend := MujocoBackend(model, worlds))
    sensors.sense()
    yield sensors, backend
    sensors.close()


Drawn = tuple[SensorSet, MujocoBackend]


def camera(drawn: Drawn, name: str) -> CameraSensor:
    sensor = drawn[0][name]
    assert isinstance(sensor, CameraSensor)
    return sensor


def test_shapes_and_types(drawn: Drawn) -> None:
    data = camera(drawn, "plain").data
    assert data.rgb is not None and data.depth is not None and data.segmentation is not None
    assert (data.rgb.shape, data.rgb.dtype) == ((2, 120, 160, 3), np.uint8)
    assert (data.depth.shape, data.depth.dtype) == ((2, 120, 160, 1), np.float32)
    assert (data.segmentation.shape, data.segmentation.dtype) == ((2, 120, 160, 2), np.int32)
    assert camera(drawn, "small").data.rgb.shape == (2, 24, 32, 3)
    assert camera(drawn, "small").data.depth is None


@pytest.mark.parametrize("name", ["plain", "odd"])
def test_a_known_point_appears_where_the_intrinsics_say(drawn: Drawn, name: str) -> None:
    sensor, model = camera(drawn, name), drawn[1].model
    rows, columns = np.nonzero(sensor.data.segmentation[0, ..., 0] == model.geom("ball").id)
    right, up, ahead = 0.3, 0.2, 1.0
    lens = sensor.intrinsics
    assert columns.mean() == pytest.approx(lens.cx + lens.fx * right / ahead, abs=0.5)
    assert rows.mean() == pytest.approx(lens.cy - lens.fy * up / ahead, abs=0.5)
    np.testing.assert_array_equal(sensor.data.rgb[0, rows[0] + 1, columns[0]][1:], [0, 0])  # red


@pytest.mark.parametrize("name", ["plain", "odd"])
def test_depth_times_inverse_intrinsics_is_where_rays_hit(drawn: Drawn, name: str) -> None:
    sensor, rays = camera(drawn, name), drawn[0][f"rays of {name}"]
    lens, depth = sensor.intrinsics, sensor.data.depth[0, ..., 0].astype(float)
    columns, rows = np.meshgrid(np.arange(lens.width), np.arange(lens.height))
    points = np.stack(
        [(columns - lens.cx) / lens.fx * depth, (lens.cy - rows) / lens.fy * depth, 2 - depth], -1
    ).reshape(-1, 3)
    hit = rays.data.distances[0] > 0
    np.testing.assert_array_equal(np.isinf(depth.ravel()), ~hit)
    errors = np.linalg.norm(points[hit] - rays.data.hit_pos_w[0, hit], axis=1)
    # On edges the picture may have the one side and the ray the other.
    assert np.quantile(errors, 0.99) < 1e-3
    assert np.median(errors) < 1e-5


WALLS = 0.013, 0.3, 35.0, 6000.0
"""Distances of four walls from a lens [m], which has one in each quarter of its picture."""


@pytest.mark.parametrize("extent", [0.05, 1.0, 40.0, None], ids=str)
def test_cameras_see_what_is_near_and_what_is_far_in_worlds_of_any_size(
    extent: float | None,
) -> None:
    """None is the extent that MuJoCo finds, of kilometres: it is as if a world had grown."""
    need_images()
    spec = mujoco.MjSpec()
    if extent is not None:
        spec.stat.extent = extent
    spec.worldbody.add_light(pos=[0, 0, 0], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL)
    sides = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    for distance, color, (up, left) in zip(WALLS, np.eye(4)[:, :3], sides):
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, rgba=[*color, 1.0],
            pos=[1.05 * distance, left * distance, up * distance],
            size=[0.05 * distance, distance, distance],
        )  # fmt: skip
    spec.worldbody.add_camera(name="lens", xyaxes=[0, -1, 0, 0, 0, 1], fovy=60)
    every = ("rgb", "depth", "segmentation")
    rays = PinholeCameraPatternCfg(width=48, height=36, fovy=60)
    sensors = SensorSet(
        [
            CameraSensorCfg(
                name="eye", camera_name="lens", width=48, height=36, data_types=every
            ),
            RayCastSensorCfg(
                name="rays", frame=ObjRef("camera", "lens"), pattern=rays, max_distance=1e5
            ),
        ]
    )  # fmt: skip
    model = spec.compile()
    assert extent or model.stat.extent > 5000.0
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sensors.initialize(MujocoBackend(model, data))
    sensors.sense()
    eye, hits = sensors["eye"].data, sensors["rays"].data.hit_pos_w[0]
    sensors.close()
    depth, top, left = eye.depth[0, ..., 0], slice(0, 18), slice(0, 24)
    bottom, right = slice(18, None), slice(24, None)
    quarters = [(top, left), (top, right), (bottom, left), (bottom, right)]
    for number, (quarter, distance) in enumerate(zip(quarters, WALLS)):
        np.testing.assert_allclose(depth[quarter], distance, rtol=1e-5)
        assert (eye.segmentation[0][quarter] == [number, mujoco.mjtObj.mjOBJ_GEOM]).all()
        strongest = eye.rgb[0][quarter].argmax(axis=-1)
        assert number == 3 or (strongest == number).all()
    np.testing.assert_allclose(depth.ravel(), hits[:, 0], rtol=1e-5)


def test_segmentation_names_what_rays_hit(drawn: Drawn) -> None:
    sensor, model = camera(drawn, "plain"), drawn[1].model
    ids, kinds = sensor.data.segmentation[0, ..., 0], sensor.data.segmentation[0, ..., 1]
    seen = {model.geom(i).name for i in np.unique(ids) if i >= 0}
    assert seen == {"floor", "ball", "box"}
    assert set(np.unique(kinds)) == {-1, int(mujoco.mjtObj.mjOBJ_GEOM)}
    np.testing.assert_array_equal(kinds == -1, np.isinf(sensor.data.depth[0, ..., 0]))


def test_only_enabled_groups_are_seen_and_no_sites_or_rangefinders(drawn: Drawn) -> None:
    model = drawn[1].model
    segmentation = camera(drawn, "all groups").data.segmentation
    assert model.geom("hidden").id in segmentation[..., 0]
    assert int(mujoco.mjtObj.mjOBJ_SITE) not in segmentation[..., 1]
    yellow = np.array(camera(drawn, "plain").data.rgb[0], int)
    assert not ((yellow[..., 0] > 150) & (yellow[..., 1] > 150) & (yellow[..., 2] < 80)).any()


def test_textures_and_shadows_can_be_left_out(drawn: Drawn) -> None:
    segmentation = camera(drawn, "plain").data.segmentation[0, ..., 0]
    model = drawn[1].model
    box, floor = (segmentation == model.geom(name).id for name in ("box", "floor"))
    with_texture = camera(drawn, "plain").data.rgb[0][box].mean(axis=0)
    without = camera(drawn, "bare").data.rgb[0][box].mean(axis=0)
    assert with_texture[2] > 5 * with_texture[0]  # blue
    assert without[2] == pytest.approx(without[0], abs=2)  # grey
    lit = camera(drawn, "plain").data.rgb[0][floor].mean(axis=1)
    shaded = camera(drawn, "shady").data.rgb[0][floor].mean(axis=1)
    assert (shaded < lit - 20).any() and not (shaded > lit + 20).any()


def test_a_camera_on_a_body_moves_with_it(drawn: Drawn) -> None:
    sensor, backend = camera(drawn, "on cart"), drawn[1]
    places = [data.camera("on cart").xpos for data in backend.data]
    np.testing.assert_allclose(places, [[0.1, 0, 2], [0.3, 0, 2]])
    assert sensor.camera_idx == backend.model.camera("on cart").id
    depth = sensor.data.depth
    assert not np.array_equal(depth[0], depth[1])
    depth[:] = 0  # a clone
    assert sensor.data.depth.any()


def test_pictures_are_as_they_were_sensed(drawn: Drawn) -> None:
    (sensors, backend), sensor = drawn, camera(drawn, "small")
    before = sensor.data
    data = backend.data[0]
    data.geom_xpos[backend.model.geom("ball").id, 0] -= 0.2
    sensor.update(0.1)
    sensor.reset([0])
    assert sensor.data is before
    sensors.sense()
    assert not np.array_equal(sensor.data.rgb[0], before.rgb[0])
    np.testing.assert_array_equal(sensor.data.rgb[1], before.rgb[1])
    mujoco.mj_kinematics(backend.model, data)
    sensors.sense()
    np.testing.assert_array_equal(sensor.data.rgb, before.rgb)


def test_the_field_of_view_of_an_existing_camera_can_be_changed() -> None:
    """Also of one with a sensor size, which would come first."""
    for name in ("down", "lens"):
        cfg = CameraSensorCfg(name="c", camera_name=name, fovy=90.0, width=64, height=48)
        sensor = build(cfg)
        lens = sensor.intrinsics
        assert (lens.fx, lens.fy, lens.cx, lens.cy) == pytest.approx((24, 24, 31.5, 23.5))


def test_orthographic(drawn: Drawn) -> None:
    sensor, model = camera(drawn, "flat"), drawn[1].model
    rows, columns = np.nonzero(sensor.data.segmentation[0, ..., 0] == model.geom("ball").id)
    per_metre = 120 / 1.2
    assert columns.mean() == pytest.approx(79.5 + 0.3 * per_metre, abs=0.5)
    assert rows.mean() == pytest.approx(59.5 - 0.2 * per_metre, abs=0.5)
    assert sensor.data.depth[0, 60, 80, 0] == pytest.approx(2.0, abs=1e-4)
    with pytest.raises(ValueError, match="orthographic: it has no focal length"):
        sensor.intrinsics  # noqa: B018


def test_intrinsics_of_a_field_of_view() -> None:
    lens = Intrinsics.from_fovy(90.0, 640, 480)
    assert (lens.fx, lens.fy, lens.cx, lens.cy) == pytest.approx((240, 240, 319.5, 239.5))


def build(cfg: CameraSensorCfg) -> CameraSensor:
    sensor = cfg.build()
    spec = mujoco.MjSpec.from_string(SCENE)
    sensor.edit_spec(spec)
    sensor.initialize(MujocoBackend(model := spec.compile(), mujoco.MjData(model)))
    return sensor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"camera_name": "nose"}, "the model has no camera 'nose'"),
        ({"parent_body": "tail"}, "the model has no body 'tail'"),
        ({"name": "down"}, "already has a camera 'down'"),
        ({"camera_name": "down", "parent_body": "cart"}, "parent_body for a new camera"),
        ({"data_types": ("heat",)}, r"data_types .* got \('heat',\)"),
        ({"width": 0}, "pixels, got 0 x 120"),
        ({"enabled_geom_groups": (6,)}, r"enabled_geom_groups .* got \(6,\)"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(CameraSensorCfg(**{"name": "c"} | options))


def test_a_camera_needs_a_context_and_keeps_to_its_thread(drawn: Drawn) -> None:
    sensors, backend = drawn
    alone = CameraSensorCfg(name="c", camera_name="down").build()
    alone.initialize(backend)
    with pytest.raises(RuntimeError, match=r"CameraSensor: call set_context\(\) first"):
        alone.sense()
    with ThreadPoolExecutor(1) as other:
        sensing = other.submit(sensors.sense)
        with pytest.raises(RuntimeError, match="only the first thread that rendered"):
            sensing.result(timeout=60)


def test_a_context_knows_its_sensors_and_draws_what_has_changed(drawn: Drawn) -> None:
    backend, sensor = drawn[1], camera(drawn, "small")
    model, context = backend.model, sensor.context
    assert context.has_cameras and context.has_raycasts
    rays = SensorContext(backend, [RayCastSensorCfg(name="r", frame=ObjRef("site", "s")).build()])
    assert not rays.has_cameras and rays.has_raycasts
    before, colors = sensor.data.rgb.copy(), model.tex_data.copy()
    model.tex_data[:] = 255 - colors
    sensor.sense()
    np.testing.assert_array_equal(sensor.data.rgb, before)  # a copy is drawn
    context.recreate(model)
    sensor.sense()
    assert not np.array_equal(sensor.data.rgb, before)
    model.tex_data[:] = colors
    context.recreate(model)
    sensor.sense()
    np.testing.assert_array_equal(sensor.data.rgb, before)
    with pytest.raises(ValueError, match=r"the model must have the sizes .*, got \{.nbody.: 1,"):
        context.recreate(mujoco.MjModel.from_xml_string("<mujoco/>"))


def test_pictures_by_the_id_of_the_camera(drawn: Drawn) -> None:
    sensors, backend = drawn
    plain, cart = sensors["plain"], sensors["on cart"]
    assert isinstance(plain, CameraSensor) and isinstance(cart, CameraSensor)
    context = plain.context
    down = backend.model.camera("down").id
    assert plain.camera_idx == down
    assert context.get_rgb(down) is plain.data.rgb
    assert context.get_depth(down) is plain.data.depth
    assert context.get_segmentation(down) is plain.data.segmentation
    np.testing.assert_array_equal(context.get_depth(cart.camera_idx), cart.data.depth)
    with pytest.raises(ValueError, match=f"no sensor takes rgb with the camera {cart.camera_idx}"):
        context.get_rgb(cart.camera_idx)


def test_without_opengl_the_message_says_what_to_install(monkeypatch: Any) -> None:
    def broken(*_: Any) -> None:
        raise ImportError("no libEGL.so.1")

    monkeypatch.setattr(mujoco, "Renderer", broken)
    sensors = SensorSet([CameraSensorCfg(name="c", camera_name="down")])
    model = mujoco.MjModel.from_xml_string(SCENE)
    sensors.initialize(MujocoBackend(model, mujoco.MjData(model)))
    for library, install in (("egl", "libegl1 libgl1-mesa-dri"), ("osmesa", "libosmesa6")):
        monkeypatch.setenv("MUJOCO_GL", library)
        message = rf"no libEGL.so.1. MUJOCO_GL is {library}: install {install}, then"
        with pytest.raises(RenderingUnavailable, match=message):
            sensors.sense()
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no pictures: no libEGL"):
        need_images()
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="no pictures: no libEGL"):
        need_images()


def test_the_message_says_when_mujoco_was_imported_too_early(monkeypatch: Any) -> None:
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    monkeypatch.setattr(opengl, "_is_late", False)
    monkeypatch.setattr(opengl, "find_library", lambda name: f"lib{name}.so")
    opengl.choose_opengl()  # MuJoCo is there already
    assert "import crazyflow_ros before mujoco, or set MUJOCO_GL=egl" in opengl.advice()
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    assert "unset it" in opengl.advice()


def test_the_example_of_the_docs_runs(drawn: Drawn) -> None:
    del drawn  # there is something to draw with
    text = (ROOT / "docs" / "guides" / "sensors.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    sensors = names["sensors"]
    assert sensors["lidar"].data.distances.shape == (1, 360)
    assert sensors["eye"].data.rgb.shape == (1, 120, 160, 3)
    assert sensors["imu"].data.linear_acceleration.shape == (1, 3)
    assert sensors["feet"].data.found.shape == (1, 1)
    sensors.close()
