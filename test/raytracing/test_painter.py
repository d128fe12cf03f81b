"""Colours against those that MuJoCo draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from images import need_images
from scipy.ndimage import maximum_filter, minimum_filter

from crazyflow_ros.raytracing import Frames, Lens, Painter
from crazyflow_ros.raytracing.textures import textures_of
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


def pictures(model: mujoco.MjModel, *, textures: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ours and MuJoCo's of each camera, and where they are of one geom."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    repeated = [np.repeat(x[None], model.ncam, axis=0) for x in (data.geom_xpos, data.geom_xmat)]
    axes = jnp.asarray(repeated[1].reshape(model.ncam, -1, 3, 3))
    geoms = Frames(jnp.asarray(repeated[0]), axes)
    eyes = Frames(jnp.asarray(data.cam_xpos), jnp.asarray(data.cam_xmat.reshape(-1, 3, 3)))
    painter = Painter(model, Lens.of_camera(model, 0, WIDTH, HEIGHT), textures=textures)
    painted = np.asarray(jax.jit(painter.paint)(*jax.tree.map(jnp.float32, (geoms, eyes))))
    renderers, drawn, ids = Renderers(model), [], []
    for camera in range(model.ncam):
        view = View(camera, WIDTH, HEIGHT, (0, 1, 2), textures, False)
        drawn.append(draw(renderers, data, view, "rgb").astype(float))
        ids.append(draw(renderers, data, view, "segmentation")[..., 0])
    renderers.close()
    inner = [maximum_filter(picture, 3) == minimum_filter(picture, 3) for picture in ids]
    return 255 * painted, np.array(drawn), np.array(inner)


@pytest.mark.parametrize(("floor", "textures"), [("0 0", True), ("4 4", False)])
def test_colors_are_those_that_mujoco_draws(floor: str, textures: bool) -> None:
    """Within one of 255 steps; only where a texture changes, it is filtered differently."""
    need_images()
    model = mujoco.MjModel.from_xml_string(SCENE.replace("FLOOR", floor))
    painted, drawn, inner = pictures(model, textures=textures)
    errors = abs(painted - drawn).max(axis=-1)[inner]
    assert np.median(errors) < 2.0 and errors.mean() < (8.0 if textures else 0.8)
    assert inner.mean() > 0.7 and drawn[inner].std() > 20.0


def test_textures_of_boxes_are_where_mujoco_draws_them() -> None:
    need_images()
    axes = ("0 1 0 0 0 1", "0 -1 0 0 0 1", "-1 0 0 0 0 1", "1 0 0 0 0 1", "1 0 0 0 1 0",
            "1 0 0 0 -1 0")  # fmt: skip
    cameras = ""
    for face in axes:
        place = 3 * np.cross(*np.array(face.split(), float).reshape(2, 3))
        pos = " ".join(map(str, place))
        cameras += f'<camera pos="{pos}" xyaxes="{face}" fovy="52"/>'
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><asset><texture name="t" type="2d" builtin="checker" mark="edge" rgb1="1 0 0"'
        ' rgb2="0 1 0" markrgb="1 1 1" width="32" height="32"/><material name="m" texture="t"'
        ' emission="1" specular="0"/></asset><worldbody><geom type="box" size="1 1 1"'
        f' material="m"/>{cameras}</worldbody></mujoco>'
    )
    painted, drawn, _ = pictures(model, textures=True)
    assert ((abs(painted - drawn).max(axis=-1) < 8).mean(axis=(1, 2)) > 0.9).all()


def test_coarser_copies_of_textures_are_means() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><asset><texture name="t" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1"'
        ' width="20" height="12"/><material name="m" texture="t"/></asset><worldbody>'
        '<geom type="box" size="1 1 1" material="m"/></worldbody></mujoco>'
    )
    textures = textures_of(model)
    one = jnp.zeros(1)
    for covered, expected in ((0.0, [1.0, 0.0, 0.0]), (1.0, [0.5, 0.0, 0.5])):
        texel = textures.sample(jnp.zeros(1, jnp.int32), one + 0.75, one + 0.75, one + covered)
        np.testing.assert_allclose(np.ravel(texel), expected, atol=0.01)
    white = textures.sample(jnp.full(1, -1), one + 0.3, one + 0.6, one)
    np.testing.assert_allclose(np.ravel(white), 1.0)


def test_without_lights_there_is_some() -> None:
    need_images()
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><visual><headlight active="0"/></visual><worldbody>'
        '<geom type="sphere" size="1"/><camera pos="0 0 3" fovy="60"/></worldbody></mujoco>'
    )
    painted, drawn, inner = pictures(model, textures=True)
    assert abs(painted - drawn)[inner].max() <= 1.0 and drawn.max() > 30
