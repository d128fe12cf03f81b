"""Colours against those that MuJoCo draws."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from images import need_images
from scipy.ndimage import maximum_filter, minimum_filter

from crazyflow_ros.raytracing import Distortion, Frames, Optics, Painter, pixels
from crazyflow_ros.raytracing.textures import textures_of
from crazyflow_ros.scene.intrinsics import Intrinsics
from crazyflow_ros.scene.renderers import Renderers
from crazyflow_ros.sensors.rendering import View, draw

WIDTH, HEIGHT = 120, 90
# The finer facets are, the less it matters that OpenGL lights only their corners.
SCENE = """
<mujoco>
  <visual><quality offsamples="4" numslices="60" numstacks="60" numquads="12"/></visual>
  <asset>
    <texture name="squares" type="2d" builtin="checker" mark="edge" rgb1=".8 .2 .2" rgb2=".2 .6 .9"
             markrgb="1 1 1" width="64" height="64"/>
    <texture name="gradient" type="2d" builtin="gradient" rgb1=".9 .2 .2" rgb2=".1 .3 .9" width="64"
             height="32"/>
    <texture type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2=".9 .9 1" width="64"
             height="64"/>
    <material name="over" texture="squares" texrepeat="2 3"/>
    <material name="uniform" texture="squares" texuniform="true" texrepeat="3 2"/>
    <material name="glossy" texture="gradient" texrepeat="1 1" specular=".8" shininess=".3"/>
    <material name="glows" emission=".4" rgba=".3 .8 .2 1"/>
  </asset>
  <worldbody>
    <light pos="1 0 4" dir="0.2 0 -1" type="spot" cutoff="50" exponent="3" attenuation="1 .05 .02"
           ambient=".1 .05 0" specular=".4 .4 .4"/>
    <light type="directional" dir="1 .5 -1" diffuse=".3 .3 .4"/>
    <light type="point" pos="0 0 2" diffuse="1 1 1"/>
    <geom type="plane" size="FLOOR .1" pos="3 0 -1" material="over"/>
    <geom type="box" size=".3 .4 .3" pos="2.5 1.2 0" euler="20 30 40" material="over"/>
    <geom type="box" size=".3 .4 .3" pos="2.5 -1.2 0" euler="10 -40 70" material="uniform"/>
    <geom type="sphere" size=".4" pos="2.5 0.1 .6" euler="50 30 40" material="glossy"/>
    <geom type="cylinder" size=".3 .4" pos="2.2 0.2 -.5" euler="20 -40 0" material="glossy"/>
    <geom type="capsule" size=".2 .3" pos="3 1.3 .9" euler="20 60 40" material="glows"/>
    <geom type="ellipsoid" size=".2 .3 .5" pos="3 -1.3 1" euler="20 60 40" material="uniform"/>
    <geom type="box" size=".3 .2 .2" pos="3.6 0 1.2" euler="20 60 40"/>
    <geom type="box" size=".05 .3 .3" pos="1.5 -.2 0.1" rgba=".2 .9 .2 .4"/>
    <geom type="sphere" size=".3" pos="2 -.6 1.1" material="over" rgba=".1 .5 .9 1"/>
    <camera pos="0 0 0.6" xyaxes="0 -1 0 0.2 0 1" fovy="70"/>
  </worldbody>
</mujoco>
"""


def painted(model: mujoco.MjModel, painter: Painter) -> np.ndarray:
    """Pictures of all cameras."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    repeated = [np.repeat(x[None], model.ncam, axis=0) for x in (data.geom_xpos, data.geom_xmat)]
    axes = jnp.asarray(repeated[1].reshape(model.ncam, -1, 3, 3))
    geoms = Frames(jnp.asarray(repeated[0]), axes)
    eyes = Frames(jnp.asarray(data.cam_xpos), jnp.asarray(data.cam_xmat.reshape(-1, 3, 3)))
    paint = jax.jit(painter.paint)
    return 255 * np.asarray(paint(*jax.tree.map(jnp.float32, (geoms, eyes))))


def pictures(
    model: mujoco.MjModel, *, textures: bool = True, size: tuple[int, int] = (WIDTH, HEIGHT)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ours and MuJoCo's of each camera, and where they are of one geom."""
    ours = painted(
        model, Painter(model, Optics.of_camera(model, 0, *size).lens(), textures=textures)
    )
    return ours, *drawn_by_mujoco(model, View(0, *size, (0, 1, 2), textures, False))


def drawn_by_mujoco(model: mujoco.MjModel, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of all cameras, and where they are of one geom."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderers, drawn, ids = Renderers(model), [], []
    for camera in range(model.ncam):
        view = replace(view, camera=camera)
        drawn.append(draw(renderers, data, view, "rgb").astype(float))
        ids.append(draw(renderers, data, view, "segmentation")[..., 0])
    renderers.close()
    inner = [maximum_filter(picture, 3) == minimum_filter(picture, 3) for picture in ids]
    return np.array(drawn), np.array(inner)


@pytest.mark.parametrize(
    ("floor", "textures"), [("0 0", True), pytest.param("4 4", False, marks=pytest.mark.soak)]
)
def test_colors_are_those_that_mujoco_draws(floor: str, textures: bool) -> None:
    """Within one of 255 steps; only where a texture changes, it is filtered differently."""
    need_images()
    model = mujoco.MjModel.from_xml_string(SCENE.replace("FLOOR", floor))
    ours, drawn, inner = pictures(model, textures=textures)
    errors = abs(ours - drawn).max(axis=-1)[inner]
    assert np.median(errors) < 2.0 and errors.mean() < (8.0 if textures else 0.8)
    assert inner.mean() > 0.7 and drawn[inner].std() > 20.0


def test_coarser_copies_of_textures_are_means() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><asset><texture name="t" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1"'
        ' width="20" height="12"/><material name="m" texture="t"/></asset><worldbody>'
        '<geom type="box" size="1 1 1" material="m"/></worldbody></mujoco>'
    )
    textures, _ = textures_of(model)
    one = jnp.zeros(1)
    for covered, expected in ((0.0, [1.0, 0.0, 0.0]), (1.0, [0.5, 0.0, 0.5])):
        texel = textures.sample(jnp.zeros(1, jnp.int32), one + 0.75, one + 0.75, one + covered)
        np.testing.assert_allclose(np.ravel(texel), expected, atol=0.01)
    white = textures.sample(jnp.full(1, -1), one + 0.3, one + 0.6, one)
    np.testing.assert_allclose(np.ravel(white), 1.0)


def test_a_cube_around_a_mesh_with_coordinates_is_left_out_with_a_warning() -> None:
    xml = MESHES.replace("ROUND", "0 0 0 1 0 0 0 1 0 0 0 1")
    xml = xml.replace(
        'mesh="mapped" pos="1.8 0 0" material="flat"', 'name="lost" mesh="mapped" material="cube"'
    )
    model = mujoco.MjModel.from_xml_string(xml)
    with pytest.warns(UserWarning, match="texture of the geom lost is that of a cube"):
        assert textures_of(model)[1].texture[model.geom("lost").id] == -1


def test_without_lights_there_is_some() -> None:
    need_images()
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><visual><headlight active="0"/></visual><worldbody>'
        '<geom type="sphere" size="1"/><camera pos="0 0 3" fovy="60"/></worldbody></mujoco>'
    )
    ours, drawn, inner = pictures(model)
    assert abs(ours - drawn)[inner].max() <= 1.0 and drawn.max() > 30


KINDS = ("box", "sphere", "capsule", "cylinder", "ellipsoid")
MIRRORED = f"""
<mujoco>
  <visual>
    <quality offsamples="4" numslices="60" numstacks="60" numquads="12"/>
    <map shadowscale="1" shadowclip="5"/>
  </visual>
  <statistic extent="1"/>
  <asset><material name="floor" reflectance=".3" rgba=".5 .4 .3 1"/></asset>
  <worldbody>
    <light type="spot" pos="1 0 4" dir="0.4 0 -1" cutoff="60" ambient=".1 .05 0"/>
    <light type="directional" pos="0 0 3" dir="1 .5 -1" diffuse=".3 .3 .4"/>
    <light type="directional" dir="0 1 -1" diffuse=".1 .1 .1" castshadow="false"/>
    <geom type="plane" size="4 4 .1" pos="3 0 -1" material="floor"/>
    {"".join(f'<geom type="{kind}" size=".3 .2 .25" rgba="1 1 1 1"/>' for kind in KINDS * 2)}
    <geom type="box" size=".3 .3 .3" rgba=".3 .3 .9 .4"/>
    <camera pos="0 0 1.2" xyaxes="0 -1 0 0.4 0 1" fovy="70"/>
  </worldbody>
</mujoco>
"""


def test_shadows_and_reflections_are_those_that_mujoco_draws() -> None:
    """Of geoms in random places, over a floor that mirrors them, lit by a lamp and by the sun.

    All worlds are painted at once; MuJoCo draws them one by one.
    """
    need_images()
    model, rng = mujoco.MjModel.from_xml_string(MIRRORED), np.random.default_rng(0)
    painter = Painter(model, Optics.of_camera(model, 0, WIDTH, HEIGHT).lens(), shadows=True)
    view, n, worlds, drawn, inner = View(0, WIDTH, HEIGHT, (0, 1, 2), True, True), 3, [], [], []
    for _ in range(n):
        model.geom_pos[1:] = rng.uniform([1.8, -1.3, -0.3], [4.0, 1.3, 1.2], (model.ngeom - 1, 3))
        quat = rng.normal(size=(model.ngeom - 1, 4))
        model.geom_quat[1:] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        model.geom_rgba[1:, :3] = rng.uniform(0.2, 0.9, (model.ngeom - 1, 3))
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        axes = data.geom_xmat.reshape(-1, 3, 3)
        color = np.concatenate([painter.look.color[0, :1], model.geom_rgba[1:]])
        worlds.append((data.geom_xpos.copy(), axes.copy(), color))
        for whole, part in zip((drawn, inner), drawn_by_mujoco(model, view)):
            whole.append(part[0])
    pos, axes, color = (jnp.asarray(np.stack(part), jnp.float32) for part in zip(*worlds))
    eye = Frames(
        jnp.asarray(np.repeat(data.cam_xpos, n, axis=0), jnp.float32),
        jnp.asarray(np.repeat(data.cam_xmat.reshape(1, 3, 3), n, axis=0), jnp.float32),
    )
    look = jax.tree.map(lambda x: jnp.repeat(x, n, axis=0), painter.look)._replace(color=color)
    paint = jax.jit(painter.paint)
    ours = 255 * np.asarray(paint(Frames(pos, axes), eye, look))
    errors = abs(ours - np.array(drawn)).max(axis=-1)[np.array(inner)]
    # The rest are edges of shadows and reflections.
    assert np.median(errors) < 1.0 and np.quantile(errors, 0.9) < 3.0 and errors.mean() < 2.0
    assert np.mean(inner) > 0.6 and np.std(drawn) > 20.0


def test_shadows_are_where_geometry_says() -> None:
    """Of a ball and of a box on a floor: of the sun in red, of a lamp in green."""
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco>
          <visual><headlight active="0"/></visual>
          <worldbody>
            <light type="directional" pos="-1 0 3" dir="1 .5 -1.5" diffuse="1 0 0"
                   specular="0 0 0"/>
            <light type="spot" pos="0 .3 2" dir="0 0 -1" cutoff="85" diffuse="0 1 0"
                   specular="0 0 0"/>
            <geom type="plane" size="0 0 1"/>
            <geom type="sphere" size=".3" pos="-.5 0 .7"/>
            <geom type="box" size=".4 .2 .1" pos=".7 .2 .6"/>
            <camera pos="0 0 6" fovy="45"/>
          </worldbody>
        </mujoco>"""
    )
    lens = Optics.of_camera(model, 0, WIDTH, HEIGHT).lens()
    picture = painted(model, Painter(model, lens, shadows=True))[0]
    points = np.stack([6 * lens.x, 6 * lens.y, np.zeros_like(lens.x)], axis=-1)
    floor = ~crosses(np.array([0.0, 0.0, 6.0]) - points, points)
    sun, lamp = np.array([-1.0, -0.5, 1.5]), np.array([0.0, 0.3, 2.0]) - points
    for channel, way in enumerate((np.broadcast_to(sun, points.shape), lamp)):
        dark = crosses(way, points)
        assert 0.01 < dark[floor].mean() < 0.5
        assert ((picture[..., channel] == 0.0) == dark)[floor].mean() > 0.995


def crosses(way: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Whether the ball or the box is on the way from points."""
    away = start - [-0.5, 0.0, 0.7]
    nearest = np.clip(-(away * way).sum(-1) / (way * way).sum(-1), 0.0, None)[..., None]
    ball = np.linalg.norm(away + nearest * way, axis=-1) < 0.3
    with np.errstate(divide="ignore"):
        ends = (
            np.array([0.7, 0.2, 0.6]) - start + [[[[1]]], [[[-1]]]] * np.array([0.4, 0.2, 0.1])
        ) / way
    return ball | (ends.min(0).max(-1) < ends.max(0).min(-1))


MESHES = """
<mujoco>
  <visual><quality offsamples="4" numslices="60" numstacks="60"/></visual>
  <asset>
    <texture name="flat" type="2d" builtin="checker" rgb1=".9 .2 .1" rgb2=".2 .8 .3" width="64"
             height="64"/>
    <texture name="cube" type="cube" builtin="checker" mark="edge" rgb1="1 0 0" rgb2="0 0 1"
             markrgb="1 1 1" width="32" height="192"/>
    <texture name="face" type="cube" builtin="gradient" rgb1=".9 .8 0" rgb2="0 .8 .9" width="32"
             height="32"/>
    <material name="flat" texture="flat" texrepeat="2 3"/>
    <material name="uniform" texture="flat" texrepeat="2 3" texuniform="true"/>
    <material name="cube" texture="cube"/>
    <material name="long" texture="cube" texuniform="true"/>
    <material name="face" texture="face"/>
    <mesh name="round" vertex="ROUND"/>
    <mesh name="edges" vertex="-.4 -.4 -.4 .4 -.4 -.4 0 .5 -.4 0 0 .4"/>
    <mesh name="mapped" vertex="-.5 -.5 0 .5 -.5 0 .5 .5 0 -.5 .5 0 0 0 -.5"
          texcoord="0 0 1 0 1 1 0 1 .5 .5" face="0 1 2 0 2 3 0 3 4 1 0 4 2 1 4 3 2 4"/>
    <hfield name="hills" nrow="9" ncol="9" size="1 .7 .2 .1"/>
  </asset>
  <worldbody>
    <light type="directional" dir=".5 .3 -1"/>
    <geom type="hfield" hfield="hills" pos="-1.2 1.5 0" material="flat"/>
    <geom type="hfield" hfield="hills" pos="1.2 1.5 0" material="uniform"/>
    <geom type="mesh" mesh="round" pos="-1.8 0 0" material="long"/>
    <geom type="mesh" mesh="round" pos="-.6 0 0"/>
    <geom type="mesh" mesh="edges" pos=".6 0 0" euler="20 0 30"/>
    <geom type="mesh" mesh="mapped" pos="1.8 0 0" material="flat"/>
    <geom type="mesh" mesh="mapped" pos="1.8 -1.2 0" material="uniform"/>
    <geom type="box" size=".3 .4 .3" pos="-1.8 -1.2 0" euler="20 10 0" material="face"/>
    <geom type="capsule" size=".2 .3" pos="-.8 -1.2 0" euler="40 30 70" material="cube"/>
    <geom type="ellipsoid" size=".3 .4 .3" pos="0 -1.2 0" material="cube"/>
    <geom type="cylinder" size=".2 .3" pos=".8 -1.2 0" euler="60 0 0" material="long"/>
    <camera pos="0.2 -1.2 5" xyaxes="1 0 0 0 1 .2" fovy="50"/>
  </worldbody>
</mujoco>
"""


def test_meshes_height_fields_and_cubes_look_as_mujoco_draws_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And as they do where all pixels are painted at once."""
    need_images()
    around, down = np.meshgrid(np.linspace(0, 6, 20), np.linspace(0.2, 2.9, 12))
    ball = 0.4 * np.stack(
        [np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down)]
    )
    xml = MESHES.replace("ROUND", " ".join(f"{x:.5f}" for x in ball.reshape(3, -1).T.ravel()))
    model = mujoco.MjModel.from_xml_string(xml)
    model.hfield_data[:] = np.random.default_rng(1).random(len(model.hfield_data))
    ours, drawn, inner = pictures(model, size=(320, 240))
    errors = abs(ours - drawn).max(axis=-1)[inner]
    seen = drawn[inner].max(axis=-1) > 0
    # Textures are filtered differently where they change.
    assert (errors[seen] < 8.0).mean() > 0.85 and np.median(errors[seen]) < 2.0
    assert seen.mean() > 0.2
    monkeypatch.setattr(
        pixels.lax, "platform_dependent", lambda *args, default, **_: default(*args)
    )
    at_once = painted(model, Painter(model, Optics.of_camera(model, 0, 320, 240).lens()))
    assert (abs(at_once - ours).max(axis=-1) < 0.1).mean() > 0.995


@pytest.mark.soak
def test_a_fisheye_that_sees_half_of_the_world_paints_as_a_narrow_one() -> None:
    """In the middle; its rays are unit vectors, those of the narrow one are not."""
    model = mujoco.MjModel.from_xml_string(SCENE.replace("FLOOR", "0 0"))
    bent = Distortion("equidistant", (0.02, -0.004, 0.0, 0.0))
    wide = Optics(Intrinsics(112, 64, 32.0, 32.0, 55.5, 31.5), False, bent).lens()
    narrow = Optics(Intrinsics(64, 48, 32.0, 32.0, 31.5, 23.5), False, bent).lens()
    assert wide.z is not None and narrow.z is None
    whole, part = (painted(model, Painter(model, lens, textures=False)) for lens in (wide, narrow))
    errors = abs(whole[:, 8:-8, 24:-24] - part).max(axis=-1)
    assert np.quantile(errors, 0.995) < 0.1 and part.std() > 30.0


HAZY = """
<mujoco>
  <visual><rgba haze="1 .4 0 1"/><map haze=".4"/><quality offsamples="4" numslices="90"/></visual>
  <asset><texture type="skybox" builtin="gradient" rgb1="0 .5 1" rgb2="0 0 .3" width="64"
                  height="64"/></asset>
  <worldbody>
    <geom type="plane" size="9 9 .1" pos="0 0 2"/>
    <geom type="plane" size="0 0 1" pos="0 0 -60" euler="1 0 0" rgba=".2 .6 .2 1"/>
    <geom type="box" size="1 1 1" pos="90 1 0"/>
    <camera xyaxes="0 -1 0 0 0 1" PROJECTION/>
    <camera pos="0 0 -70" xyaxes="0 -1 0 0 0 1" PROJECTION/>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize(
    ("projection", "seen"), [('fovy="5"', 0.1), ('projection="orthographic" fovy="170"', 0.1)]
)
def test_haze_is_where_mujoco_draws_it(projection: str, seen: float) -> None:
    """Above the first endless plane, and not below it."""
    need_images()
    model = mujoco.MjModel.from_xml_string(HAZY.replace("PROJECTION", projection))
    ours, drawn, inner = pictures(model)
    assert (drawn[0, ..., 0] > 100.0).mean() > seen and (drawn[1, ..., 0] < 100.0).all()
    assert np.quantile(abs(ours - drawn)[0].max(axis=-1)[inner[0]], 0.97) < 4.0
    assert (ours[1, ..., 0] < 100.0).all()
