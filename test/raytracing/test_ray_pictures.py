"""Cameras by rays against those of OpenGL, and in the worlds of a `Sim`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from images import need_images
from scipy.ndimage import maximum_filter, minimum_filter

from crazyflow_ros import Sim
from crazyflow_ros.scene import build_spec
from crazyflow_ros.sensors import (
    CameraSensorCfg,
    CameraSensorData,
    MujocoBackend,
    SensorContext,
    SensorSet,
    SimBackend,
    SimPictures,
)
from crazyflow_ros.sensors.rendering import Room
from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.compiled_files import CompiledFiles

EYE = CameraSensorCfg(
    name="eye", camera_name="fpv_cam:0", width=96, height=64, renderer="rays",
    data_types=("rgb", "depth", "segmentation", "normals"),
)  # fmt: skip
CORNER = replace(
    EYE, name="corner", camera_name=None, pos=(-2.5, -2.2, 1.6), fovy=65.0,
    quat=(0.633, 0.477, -0.367, -0.487), use_shadows=True,
)  # fmt: skip
POSES = [[0.9, 1.0, 0.9, 0, 0, 0.8, 0.6], [0.73, 1.4, 0.95, 0, 0, 0, 1]]


@pytest.fixture(scope="module")
def room() -> Iterator[SensorSet]:
    """Two drones in the room, of which the first sees the second, and a camera in the corner."""
    need_images()
    drawn = [
        replace(cfg, name=f"{cfg.name} drawn", renderer="opengl", camera_name=camera, fovy=None,
                data_types=("rgb", "depth", "segmentation"))
        for cfg, camera in ((EYE, "fpv_cam:0"), (CORNER, "corner"))
    ]  # fmt: skip
    sensors = SensorSet([EYE, CORNER, *drawn])
    spec = build_spec("cf2x_L250", ["0", "1"], scene="room", mocap=True, poses=POSES)
    # The drawing has facets, the rays do not.
    spec.visual.quality.numslices = spec.visual.quality.numstacks = 100
    sensors.edit_spec(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sensors.initialize(MujocoBackend(model, data))
    sensors.sense()
    yield sensors
    sensors.close()


@pytest.mark.parametrize("name", ["eye", "corner"])
def test_rays_see_what_opengl_draws(room: SensorSet, name: str) -> None:
    traced, drawn = room[name].data, room[f"{name} drawn"].data
    assert traced.depth.shape == drawn.depth.shape and traced.depth.dtype == drawn.depth.dtype
    assert traced.segmentation.shape == drawn.segmentation.shape
    assert traced.segmentation.dtype == drawn.segmentation.dtype
    assert (traced.segmentation == drawn.segmentation).all(-1).mean() >= 0.995
    ids = drawn.segmentation[0, ..., 0]
    inner = maximum_filter(ids, 3) == minimum_filter(ids, 3)
    near = np.isclose(traced.depth, drawn.depth, rtol=0.0, atol=1e-3)[0, ..., 0][inner]
    assert inner.mean() > 0.5 and near.mean() >= 0.99
    assert len(np.unique(ids)) > 8
    assert (traced.rgb.shape, traced.rgb.dtype) == (drawn.rgb.shape, drawn.rgb.dtype)
    differences = abs(traced.rgb.astype(int) - drawn.rgb)[0].max(axis=-1)[inner]
    assert differences.mean() < 2.0 and np.quantile(differences, 0.9) <= 3.0


def test_code_for_a_scene_with_room_is_kept_for_other_numbers_of_drones_and_the_next_start(
    room: SensorSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(n_drones: int, code: CompiledFiles, space: Room) -> CameraSensorData:
        """Pictures of the first drone, who sees the second one, in front of further ones."""
        monkeypatch.setattr(compiled_files, "_files", code)
        poses = [*POSES, *([9.0, i, 1.0, 0, 0, 0, 1] for i in range(n_drones - 2))]
        model = build_spec(
            "cf2x_L250", [str(i) for i in range(n_drones)], scene="room", mocap=True, poses=poses
        ).compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        backend = MujocoBackend(model, data)
        sensor = EYE.build()
        sensor.initialize(backend)
        sensor.set_context(SensorContext(backend, (), space))
        sensor.sense()
        return sensor.data

    first, space = CompiledFiles(tmp_path, pytest.fail), Room()
    two = taken(2, first, space)
    assert first.n_compiled == 1
    alone = room["eye"].data
    np.testing.assert_array_equal(two.segmentation[..., 1], alone.segmentation[..., 1])
    for kind in ("rgb", "depth", "normals"):
        np.testing.assert_array_equal(getattr(two, kind), getattr(alone, kind))
    np.testing.assert_array_equal(taken(4, first, space).depth, two.depth)
    np.testing.assert_array_equal(taken(2, first, space).rgb, two.rgb)
    assert first.n_compiled == 1
    again = CompiledFiles(tmp_path, pytest.fail)
    np.testing.assert_array_equal(taken(3, again, Room()).rgb, two.rgb)
    assert again.n_compiled == 0


@pytest.fixture(scope="module")
def sim() -> Iterator[Sim]:
    """40 worlds of two drones in the room, in different places."""
    sim = Sim(n_worlds=40, n_drones=2, drone="cf2x_L250", scene="room")
    rng = np.random.default_rng(0)
    places = jnp.asarray(POSES)[None, :, :3] + rng.uniform(-0.2, 0.2, (40, 2, 3))
    quat = jnp.broadcast_to(jnp.asarray(POSES)[:, 3:], (40, 2, 4))
    states = sim.data.states.replace(pos=places.astype(jnp.float32), quat=quat)
    sim.data = sim.data.replace(states=states)
    yield sim
    sim.close()


SMALL = replace(EYE, width=32, height=24, data_types=("depth", "segmentation"))


@pytest.fixture(scope="module")
def first(sim: Sim) -> Any:
    """Takes the pictures of the first drone."""
    return SimPictures(sim, SMALL)


@pytest.fixture(scope="module")
def each(sim: Sim) -> Any:
    """Takes those of both drones."""
    return SimPictures(sim, replace(SMALL, camera_name="fpv_cam"))


def test_pictures_of_a_sim_are_those_of_its_back_end(sim: Sim, first: Any) -> None:
    data = first(sim.data)
    assert data.depth.shape == (40, 24, 32, 1) and data.segmentation.shape == (40, 24, 32, 2)
    sensors = SensorSet([SMALL])
    sensors.initialize(SimBackend(sim))
    sensors.sense()
    again = sensors["eye"].data
    assert isinstance(again.depth, jax.Array)
    assert (again.segmentation == data.segmentation).mean() > 0.999
    assert jnp.isclose(again.depth, data.depth, rtol=1e-4).mean() > 0.998
    assert len(np.unique(np.asarray(data.depth)[:, -1, -1])) == 40


def test_worlds_may_look_different(sim: Sim) -> None:
    pictures: Any = SimPictures(sim, replace(SMALL, data_types=("rgb", "segmentation")))
    ids = np.asarray(pictures(sim.data).segmentation)[..., 0]
    look = jax.tree.map(lambda x: jnp.repeat(x, 40, axis=0), pictures.look)
    wall = sim.mj_model.geom("north_right").id
    red = look.color.at[1, wall].set(jnp.array([1.0, 0.0, 0.0, 1.0]))
    dark = look.lights._replace(diffuse=look.lights.diffuse.at[2:].set(0.0))
    changed = np.asarray(pictures(sim.data, look=look._replace(color=red, lights=dark)).rgb, int)
    usual = np.asarray(pictures(sim.data).rgb, int)
    np.testing.assert_array_equal(changed[0], usual[0])
    on_wall = ids[1] == wall
    assert on_wall.any() and np.median(changed[1][on_wall], axis=0)[1:].max() < 4
    floor = ids[2] == sim.mj_model.geom("floor").id
    assert changed[2][floor].mean() < usual[2][floor].mean() - 10


def test_worlds_that_are_not_due_keep_their_pictures(sim: Sim, each: Any) -> None:
    before, states = each(sim.data), sim.data.states
    moved = sim.data.replace(states=states.replace(pos=states.pos + jnp.array([0.0, 0.0, 0.1])))
    after = each(moved)
    due = jnp.asarray(np.random.default_rng(0).random(40) < 0.4)
    within = jax.jit(lambda data, **kept: each(data, **kept))
    for take in (each, within):
        mixed = take(moved, due=due, before=before)
        for kind in ("depth", "segmentation"):
            new, old, got = (np.asarray(getattr(x, kind)) for x in (after, before, mixed))
            close = np.isclose(got, np.where(due[:, None, None, None, None], new, old))
            assert close.mean() > 0.999 and not np.isclose(new, old).all()
    for wrong, message in (
        ({"due": due}, "before"),
        ({"due": due[1:], "before": before}, r"due .*40 .*\(39,\)"),
        ({"due": due, "before": replace(before, depth=None)}, "before .*depth"),
    ):
        with pytest.raises(ValueError, match=message):
            each(moved, **wrong)


def test_each_drone_takes_pictures(sim: Sim, first: Any, each: Any) -> None:
    both, states = each(sim.data), sim.data.states
    assert both.depth.shape == (40, 2, 24, 32, 1)
    np.testing.assert_array_equal(both.depth[:, 0], first(sim.data).depth)
    swapped = states.replace(pos=states.pos[:, ::-1], quat=states.quat[:, ::-1])  # they are alike
    np.testing.assert_array_equal(both.depth[:, 1], first(sim.data.replace(states=swapped)).depth)
    one = Sim(n_drones=2, drone="cf2x_L250", scene="room")  # of a single world, too
    states = one.data.states.replace(pos=states.pos[:1], quat=states.quat[:1])
    alone: Any = SimPictures(one, replace(SMALL, camera_name="fpv_cam"))
    np.testing.assert_array_equal(alone(one.data.replace(states=states)).depth, both.depth[:1])
    one.close()


def test_pictures_within_a_compiled_loop_and_with_other_mounts(sim: Sim, first: Any) -> None:
    step = sim.build_step_fn()

    @jax.jit
    def fly(data: Any) -> tuple[Any, CameraSensorData]:
        def tick(data: Any, _: None) -> tuple[Any, CameraSensorData]:
            data = step(data, 5)
            return data, first(data)

        return jax.lax.scan(tick, data, None, length=2)

    end, taken = fly(sim.data)
    assert taken.depth.shape == (2, 40, 24, 32, 1)
    now = first(end)
    assert jnp.isclose(taken.depth[-1], now.depth, rtol=1e-5).mean() > 0.999
    higher = first.cameras._replace(pos=first.cameras.pos + jnp.array([0.0, 0.0, 0.1]))
    above = first(end, cameras=higher)
    both = jnp.concatenate([now.segmentation, above.segmentation], axis=-1)[:, -1, :, ::2]
    floor = (both == sim.mj_model.geom("floor").id).all(-1)
    height = end.states.pos[:, 0, 2, None]
    ratio = (above.depth / now.depth)[:, -1, :, 0]
    assert floor.any()
    np.testing.assert_allclose(ratio[floor], (1 + 0.1 / height + 0 * ratio)[floor], rtol=0.02)


def test_depth_has_derivatives_by_the_pose_of_the_drone(sim: Sim) -> None:
    pictures: Any = SimPictures(sim, replace(SMALL, width=16, height=8))

    def taken(ahead: Any, data: Any) -> Any:
        states = data.states
        moved = states.pos.at[:, 0].add(ahead * jnp.array([-0.28, 0.96, 0.0]))
        return pictures(data.replace(states=states.replace(pos=moved)))

    take = jax.jit(taken)
    after, before = (take(step, sim.data) for step in (0.005, -0.005))
    same = (after.segmentation == before.segmentation)[..., :1] & jnp.isfinite(after.depth)
    differences = jnp.where(same, after.depth - before.depth, 0.0) / 0.01

    def depth(ahead: jax.Array) -> jax.Array:
        return jnp.where(same, taken(ahead, sim.data).depth, 0.0).sum()

    slope = float(jax.jit(jax.grad(depth))(0.0))
    assert slope == pytest.approx(float(differences.sum()), rel=0.05) and slope < -1000.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"camera_name": "fpv_kam"}, "'fpv_kam', only fpv_cam:0"),
        ({"enabled_geom_groups": (4,)}, r"\(4,\)"),
        ({"renderer": "opengl"}, "'opengl' .*normals"),
        ({"renderer": "vulkan"}, "'vulkan', only opengl, rays"),
    ],
)
def test_what_rays_cannot_take_is_refused(sim: Sim, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimPictures(sim, replace(EYE, **options))


def test_a_light_shines_from_where_its_body_has_moved() -> None:
    """The picture is that of a world in which the lamp has always been there."""

    def picture(x: float, moved: float) -> np.ndarray:
        model = mujoco.MjModel.from_xml_string(f"""
            <mujoco><worldbody>
              <geom type="plane" size="0 0 1"/>
              <camera name="eye" pos="0 0 3"/>
              <body pos="{x} 0 1"><joint type="slide" axis="1 0 0"/><geom size="0.05" mass="1"/>
                <light pos="0 0 -.1" dir="0 0 -1" type="spot" cutoff="40" diffuse="1 1 1"/></body>
            </worldbody></mujoco>""")
        data = mujoco.MjData(model)
        data.qpos[0] = moved
        mujoco.mj_forward(model, data)
        cfg = replace(EYE, camera_name="eye", width=48, height=32, data_types=("rgb",))
        sensors = SensorSet([cfg])
        sensors.initialize(MujocoBackend(model, data))
        sensors.sense()
        rgb = sensors["eye"].data.rgb
        sensors.close()
        assert rgb is not None
        return rgb[0].astype(int)

    there, moved, before = picture(0.7, 0.0), picture(-0.5, 1.2), picture(-0.5, 0.0)
    np.testing.assert_array_equal(moved, there)
    assert np.abs(before - there).max() > 50
