"""Pictures of a `Sim`."""

import os
import subprocess
import sys
from collections.abc import Iterator

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from images import need_images

from crazyflow_ros import Sim
from crazyflow_ros.scene import RenderingUnavailable, build_spec
from crazyflow_ros.scene.renderers import Renderers, draw_depth
from crazyflow_ros.sensors.rendering import View, draw
from crazyflow_ros.sim.pictures import Pictures


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    """Two worlds, and a camera 2 m above the floor that looks down."""
    sim = Sim(n_worlds=2)
    sim.spec.worldbody.add_camera(name="down", pos=[5, 5, 2], fovy=90)
    yield sim
    sim.close()


@pytest.fixture
def needs_opengl() -> None:
    need_images()


@pytest.mark.usefixtures("needs_opengl")
def test_depth_is_along_the_axis_of_the_camera(sim: Sim):
    depth = sim.render("depth_array", camera="down", width=60, height=40)
    np.testing.assert_allclose(depth, 2.0, atol=2e-3)  # in the corners, too
    picture, same = sim.render("rgbd_tuple", camera="down", width=60, height=40)
    np.testing.assert_array_equal(same, depth)
    alone = sim.render("rgb_array", camera="down", width=60, height=40)
    np.testing.assert_array_equal(picture, alone)


@pytest.mark.usefixtures("needs_opengl")
@pytest.mark.parametrize("extent", [0.1, 0.3, 1.0, 2.0, 2.7, 10.0, 4000.0])
def test_floor_is_as_far_as_it_is_and_nothing_is_infinitely_far(extent: float) -> None:
    """Pictures that are half floor and half nothing, the border where the horizon is drawn."""
    for height in (0.02, 1.1, 60.0):
        spec = mujoco.MjSpec()
        spec.stat.extent = extent
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        spec.worldbody.add_camera(name="ahead", pos=[7, -3, height], zaxis=[0, -1, 0], fovy=90)
        model = spec.compile()
        planes = model.vis.map.znear, model.vis.map.zfar
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        renderers = Renderers(model)
        renderer = renderers.get(60, 40)
        camera = mujoco.MjvCamera()
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        renderers.update_scene(renderer, data, camera)
        for _ in range(2):  # the scene stays as it was
            depth = draw_depth(renderer)
            assert np.isinf(depth[:20]).all()
            expected = np.tile(height / np.arange(0.5, 20)[:, None] * 20, 60)  # below the horizon
            aside = expected * np.abs(np.arange(60) - 29.5) / 20
            seen = np.maximum(expected, aside) < 150.0
            assert seen[-1].all()
            np.testing.assert_allclose(depth[20:][seen], expected[seen], rtol=1e-5)
        renderers.close()
        assert (model.vis.map.znear, model.vis.map.zfar) == planes


@pytest.mark.usefixtures("needs_opengl")
def test_a_renderer_without_shadows_draws_the_same_but_for_them() -> None:
    spec = mujoco.MjSpec()
    spec.worldbody.add_light(pos=[0, 0, 4], dir=[0.2, 0, -1])
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    spec.worldbody.add_geom(size=[0.3, 0, 0], pos=[0, 0, 1])
    spec.worldbody.add_camera(pos=[0, 0, 3])
    model = spec.compile()
    size = model.vis.quality.shadowsize
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
    renderers, pictures = Renderers(model), {}
    for can, asked in ((True, True), (True, False), (False, False), (False, True)):
        renderer = renderers.get(60, 40, shadows=can)
        renderers.update_scene(renderer, data, camera)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = asked
        pictures[can, asked] = renderer.render()
    renderers.close()
    assert model.vis.quality.shadowsize == size
    assert (pictures[True, True] != pictures[True, False]).any()
    np.testing.assert_array_equal(pictures[False, False], pictures[True, False])
    np.testing.assert_array_equal(pictures[False, True], pictures[True, False])


@pytest.mark.usefixtures("needs_opengl")
def test_a_picture_of_a_whole_world_has_its_floor(sim: Sim, monkeypatch) -> None:
    """From above, at a distance at which the cameras of drones no longer see the floor."""
    monkeypatch.setattr(sim.mj_model.stat, "extent", 500.0)
    pictures = Pictures(sim.mj_model, max_markers=0)
    view = -1, {"distance": 900.0, "elevation": -90.0, "lookat": [0, 0, 0]}
    depth = pictures.draw(sim.mj_data, "depth_array", view, (32, 24), [])
    pictures.close()
    np.testing.assert_allclose(depth, 900.0, rtol=1e-5)


@pytest.mark.usefixtures("needs_opengl")
@pytest.mark.parametrize("scene", ["floor", "room"])
def test_nothing_is_infinitely_far_in_our_scenes(scene: str) -> None:
    model = build_spec("cf2x_L250", ["cf0"], scene=scene, mocap=False).compile()
    data = mujoco.MjData(model)
    data.qpos[2] = 20.0  # above everything
    mujoco.mj_forward(model, data)
    view = View(
        camera=model.camera("fpv_cam:cf0").id, width=64, height=48, groups=(0, 1, 2),
        textures=False, shadows=False,
    )  # fmt: skip
    renderers = Renderers(model)
    depth = draw(renderers, data, view, "depth")
    kinds = draw(renderers, data, view, "segmentation")[..., 1]
    renderers.close()
    assert (kinds == -1).any()
    np.testing.assert_array_equal(np.isinf(depth), kinds == -1)


@pytest.mark.usefixtures("needs_opengl")
def test_pictures_of_many_sizes_are_drawn_by_few(sim: Sim, monkeypatch):
    made: list[mujoco.Renderer] = []

    class Counted(mujoco.Renderer):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(mujoco, "Renderer", Counted)
    limits = sim.mj_model.vis.global_
    before = limits.offwidth, limits.offheight
    sizes = [(2000, 10), *((width, 10) for width in range(8, 15))]
    for width, height in [*sizes, sizes[-1]]:
        assert sim.render("rgb_array", width=width, height=height).shape == (height, width, 3)
    assert len(made) == len(sizes) and (limits.offwidth, limits.offheight) == before
    assert sum(renderer._mjr_context is not None for renderer in made) == 4
    assert max(r._mjr_context.offWidth for r in made if r._mjr_context is not None) < 15
    sim.close()
    for width, height in ((0, 10), (10, -1)):
        with pytest.raises(ValueError, match=f"at least one pixel, got {width} x {height}"):
            sim.render("rgb_array", width=width, height=height)


def test_a_window_needs_a_display(sim: Sim, monkeypatch):
    shown: list[mujoco.MjData] = []

    class Window:
        def __init__(self, model, data):
            del model
            self._data = data

        def sync(self):
            shown.append(self._data.mocap_pos.copy())

        def close(self):
            shown.append(None)

    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(RenderingUnavailable, match="there is no display; 'rgb_array' needs none"):
        sim.render()
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setattr("mujoco.viewer.launch_passive", Window)
    for height in (0.5, 0.7):
        states = sim.data.states
        pos = jnp.zeros_like(states.pos).at[1, 0, 2].set(height)
        sim.data = sim.data.replace(states=states.replace(pos=pos))
        sim.render(world=1)
    sim.close()
    drone = int(sim.data.core.drone_mocap_ids[0])
    np.testing.assert_allclose([pos[drone, 2] for pos in shown[:2]], [0.5, 0.7])
    assert shown[2:] == [None]


@pytest.mark.usefixtures("needs_opengl")
def test_what_draws_is_freed_at_the_end_of_a_process_without_a_display():
    code = (
        "from crazyflow_ros import Sim; print(Sim().render('rgb_array', width=9, height=8).shape)"
    )
    unset = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "(8, 9, 3)\n", "")
