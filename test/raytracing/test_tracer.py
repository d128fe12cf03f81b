"""Rays against MuJoCo's own rays and pictures, and their derivatives against differences."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.raytracing import Distortion, Frames, Lens, Optics, Painter, Tracer
from crazyflow_ros.raytracing.pixels import Tiles
from crazyflow_ros.raytracing.search import by_shape, by_tile
from crazyflow_ros.raytracing.unit_shapes import MOST_SHAPES
from crazyflow_ros.scene.intrinsics import Intrinsics

GEOM = mujoco.mjtGeom
SIZE = (44, 28)  # no whole tiles
ORTHOGRAPHIC = mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC
SHAPES = (
    GEOM.mjGEOM_BOX, GEOM.mjGEOM_SPHERE, GEOM.mjGEOM_CAPSULE, GEOM.mjGEOM_CYLINDER,
    GEOM.mjGEOM_ELLIPSOID,
)  # fmt: skip


def random_scene(seed: int) -> mujoco.MjModel:
    """Three shapes of each kind on a floor, before a wall, seen from the origin."""
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec()
    world = spec.worldbody
    for kind in SHAPES * 3:
        pos, size = rng.uniform([1.3, -1.5, -1.0], [5.0, 1.5, 1.5]), rng.uniform(0.05, 0.5, 3)
        quat = rng.normal(size=4)
        world.add_geom(type=kind, pos=pos.tolist(), quat=quat.tolist(), size=size.tolist())
    world.add_geom(type=GEOM.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, -1.2])
    wall = {"pos": [6, 0, 0], "quat": [0.7071, 0, -0.7071, 0]}
    world.add_geom(type=GEOM.mjGEOM_PLANE, size=[1, 2, 1], **wall)
    looking = {"xyaxes": [0, -1, 0, 0, 0, 1]}
    world.add_camera(name="wide", fovy=70, **looking)
    world.add_camera(name="flat", fovy=3, proj=ORTHOGRAPHIC, **looking)
    return spec.compile()


def posed(model: mujoco.MjModel, camera: int = 0) -> tuple[mujoco.MjData, Frames, Frames]:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    geoms = Frames(*map(single, (data.geom_xpos, data.geom_xmat.reshape(-1, 3, 3))))
    eye = Frames(*map(single, (data.cam_xpos[camera], data.cam_xmat[camera].reshape(3, 3))))
    return data, geoms, eye


def single(array: np.ndarray) -> jax.Array:
    return jnp.asarray(array[None], jnp.float32)


def mujoco_rays(
    model: mujoco.MjModel, data: mujoco.MjData, camera: int, lens: Lens
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Depths, geoms and normals of `mj_ray` through the pixels, one by one."""
    axes = data.cam_xmat[camera].reshape(3, 3)
    z = np.zeros_like(lens.x) if lens.z is None else lens.z
    across = np.stack([lens.x, lens.y, z], axis=-1) @ axes.T
    ahead, start = -axes[:, 2] if lens.z is None else np.zeros(3), data.cam_xpos[camera]
    depth, geom = np.empty(lens.x.shape), np.empty((*lens.x.shape, 1), np.int32)
    normal = np.empty((*lens.x.shape, 3))
    for i in np.ndindex(lens.x.shape):
        origin, step = (
            (start + across[i], ahead) if lens.orthographic else (start, across[i] + ahead)
        )
        depth[i] = mujoco.mj_ray(model, data, origin, step, None, 1, -1, geom[i], normal[i])
    return np.where(depth < 0, np.inf, depth), geom[..., 0], normal


def check_against_mujoco(model: mujoco.MjModel, camera: int, lens: Lens | None = None) -> None:
    lens = lens or Optics.of_camera(model, camera, *SIZE).lens()
    tracer = Tracer(model, lens)
    data, geoms, eye = posed(model, camera)
    hits = tracer.hits(geoms, eye)
    normals = np.asarray(tracer.normals(hits, geoms, eye))[0]
    depth, geom, normal = mujoco_rays(model, data, camera, lens)
    equal = np.asarray(tracer.segmentation(hits))[0] == geom
    assert equal.mean() >= 0.999 and (geom >= 0).mean() > 0.3
    seen = equal & (geom >= 0)
    np.testing.assert_allclose(np.asarray(hits.depth)[0][seen], depth[seen], rtol=2e-5)
    assert np.isinf(np.asarray(hits.depth)[0][equal & ~seen]).all()
    assert np.quantile(abs(normals - normal)[seen], 0.999) < 1e-4
    assert not normals[equal & ~seen].any()


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**31 - 1), st.sampled_from([0, 1]))
def test_rays_hit_what_those_of_mujoco_hit(seed: int, camera: int) -> None:
    check_against_mujoco(random_scene(seed), camera)


FISHEYE = Optics(
    Intrinsics(*SIZE, 9.0, 9.0, 20.0, 13.5), False, Distortion("equidistant", (0.0,) * 4)
)
"""Sees up to 170 degrees from its axis, so that some tiles go round behind the camera."""


def test_a_fisheye_hits_what_mujoco_hits_beside_and_behind_it() -> None:
    model = random_scene(4)
    model.geom_pos[:8, 0] *= -1.0
    lens = FISHEYE.lens()
    assert lens.z is not None and (lens.z > 0.95).any()
    check_against_mujoco(model, 0, lens)


def test_meshes_and_height_fields_are_hit_as_by_mujoco() -> None:
    rng = np.random.default_rng(0)
    spec = mujoco.MjSpec()
    points = rng.normal(size=(40, 3)) * [0.5, 0.3, 0.4]
    spec.add_mesh(name="rock", uservert=points.ravel().tolist())
    heights = rng.random(108).tolist()
    spec.add_hfield(name="hills", nrow=9, ncol=12, size=[1.5, 1, 0.6, 0.2], userdata=heights)
    body = spec.worldbody.add_body(pos=[2.5, 0.3, 0.5], quat=[0.9, 0.2, 0.3, 0.1])
    body.add_geom(type=GEOM.mjGEOM_MESH, meshname="rock")
    hills = {"type": GEOM.mjGEOM_HFIELD, "hfieldname": "hills"}
    spec.worldbody.add_geom(**hills, pos=[3, 0, -0.8])
    spec.worldbody.add_geom(**hills, pos=[3, -1, 0.8], quat=[0.6, 0.5, 0.3, 0.2])
    spec.worldbody.add_camera(name="eye", xyaxes=[0, -1, 0, 0.3, 0, 1], fovy=70)
    check_against_mujoco(spec.compile(), 0)


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(k, marks=pytest.mark.soak) for k in ("perspective", "orthographic")),
        "fisheye",
    ],
)
def test_a_gpu_finds_what_the_cpu_finds(kind: str) -> None:
    """Both algorithms, on the CPU."""
    model, orthographic = random_scene(7), kind == "orthographic"
    lens = Optics.of_camera(model, int(orthographic), *SIZE).lens()
    lens = FISHEYE.lens() if kind == "fisheye" else lens
    shapes, tiles = Tracer(model, lens).shapes, Tiles.of(lens)
    _, geoms, eye = posed(model, int(orthographic))
    frames = jnp.concatenate([geoms.pos, geoms.axes.reshape(1, -1, 9)], axis=-1)
    camera = jnp.concatenate([eye.pos, eye.axes.reshape(1, 9)], axis=-1)
    frames, camera = (jnp.repeat(x, 3, axis=0) for x in (frames, camera))
    camera = camera.at[1, 1].add(0.3).at[2, 0].add(20.0)
    found = [jax.jit(find)(shapes, tiles, frames, camera, None) for find in (by_tile, by_shape)]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    assert (found[0][1] == found[1][1]).mean() > 0.999
    assert (found[0][1][0] > 0).any() and (found[0][1][2] <= 0).all()  # only the floor is endless


@pytest.fixture(scope="module")
def wide() -> tuple[Tracer, Frames, Frames]:
    model = random_scene(3)
    _, geoms, eye = posed(model)
    return Tracer(model, Optics.of_camera(model, 0, *SIZE).lens()), geoms, eye


Wide = tuple[Tracer, Frames, Frames]


def turned(axes: jax.Array, angles: jax.Array) -> jax.Array:
    """Turn axes (..., 3, 3) by small angles (..., 3) about those of the world, to first order."""
    x, y, z = (angles[..., i] for i in range(3))
    zero = jnp.zeros_like(x)
    skew = jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*x.shape, 3, 3)
    return axes + skew @ axes


@pytest.mark.soak
def test_derivatives_of_depths_are_differences(wide: Wide) -> None:
    """By positions and attitudes of the camera and of all geoms, forwards and backwards."""
    tracer, geoms, eye = wide
    rng = np.random.default_rng(0)
    n = geoms.pos.shape[1]
    away = [
        jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((3,), (3,), (n, 3), (n, 3))
    ]

    def depth(
        a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        moved = Frames(geoms.pos + c, turned(geoms.axes, d[None]))
        camera = Frames(eye.pos + a, turned(eye.axes, b[None]))
        hits = tracer.hits(moved, camera)
        return jnp.where(hits.shape >= 0, hits.depth, 0.0)[0], hits.shape[0]

    depths = jax.jit(depth)
    start, step = tuple(map(jnp.zeros_like, away)), 1e-3
    slopes = jax.jit(lambda *args: jax.jvp(lambda *at: depth(*at)[0], start, args)[1])
    forwards = slopes(*away)
    (after, shape), (before, other) = (depths(*(s * step * x for x in away)) for s in (1, -1))
    differences, same = (after - before) / (2 * step), np.asarray(shape == other)
    # Where the shape is nearly seen from the side, its depth is curved.
    smooth = same & (abs(np.asarray(forwards)) < 10.0)
    errors = abs(np.asarray(forwards - differences))[smooth]
    assert smooth.mean() > 0.8 and np.abs(forwards).max() > 1.0
    assert np.quantile(errors, 0.97) < 0.02
    weights = jnp.asarray(rng.normal(size=forwards.shape) * smooth, jnp.float32)
    backwards = jax.grad(lambda *args: (weights * depth(*args)[0]).sum(), argnums=(0, 1, 2, 3))(
        *start
    )
    product = sum(float((g * x).sum()) for g, x in zip(backwards, away))
    assert product == pytest.approx(float((weights * forwards).sum()), rel=1e-3)


def test_pictures_are_the_same_in_vmap_and_scan(wide: Wide) -> None:
    tracer, geoms, eye = wide
    places = jnp.asarray([[0.0, 0.0, 0.0], [0.1, 0.2, 0.0], [-0.5, 0.0, 0.3]])

    def picture(place: jax.Array) -> jax.Array:
        return tracer.hits(geoms, eye._replace(pos=eye.pos + place)).depth[0]

    one_by_one = np.stack([picture(place) for place in places])
    np.testing.assert_array_equal(jax.jit(jax.vmap(picture))(places), one_by_one)
    scanned = jax.lax.scan(lambda count, place: (count + 1, picture(place)), 0, places)
    np.testing.assert_array_equal(scanned[1], one_by_one)


def test_faces_are_not_seen_from_behind_and_what_is_too_near_is_not_seen() -> None:
    spec = mujoco.MjSpec()
    add = partial(spec.worldbody.add_geom, type=GEOM.mjGEOM_BOX)
    add(name="around", size=[0.5, 0.5, 0.5])
    add(name="near", size=[0.001, 0.5, 0.5], pos=[0.008, 0, 0])
    add(name="clear", size=[0.1, 1, 1], pos=[1, 0, 0], rgba=[1, 1, 1, 0])
    add(name="hidden", size=[0.1, 1, 1], pos=[1.2, 0, 0], group=3)
    add(name="glass", size=[0.1, 1, 1], pos=[2, 0, 0], rgba=[1, 1, 1, 0.1])
    spec.worldbody.add_camera(name="eye", xyaxes=[0, -1, 0, 0, 0, 1], fovy=30)
    model = spec.compile()
    tracer = Tracer(model, Optics.of_camera(model, 0, *SIZE).lens())
    _, geoms, eye = posed(model)
    hits = tracer.hits(geoms, eye)
    assert (tracer.segmentation(hits) == model.geom("glass").id).all()
    np.testing.assert_allclose(hits.depth, 1.9, rtol=1e-6)


def test_what_rays_cannot_see_is_refused() -> None:
    spec = mujoco.MjSpec()
    side = 110
    spec.add_hfield(name="field", nrow=side, ncol=side, size=[1, 1, 1, 1], userdata=[0.0] * side**2)
    spec.worldbody.add_geom(name="hills", type=GEOM.mjGEOM_HFIELD, hfieldname="field")
    spec.worldbody.add_camera(name="eye")
    model = spec.compile()
    lens = Optics.of_camera(model, 0, *SIZE).lens()
    with pytest.raises(
        ValueError, match=f"may have {MOST_SHAPES} shapes .* the geom hills it would"
    ):
        Tracer(model, lens)
    with pytest.raises(ValueError, match=r"no geom of the groups \(3,\) can be seen"):
        Tracer(model, lens, groups=(3,))


def test_outside_of_compiled_functions_nothing_compiles_twice() -> None:
    """Neither for other poses, nor for another scene with as many geoms."""

    def look(height: float) -> None:
        spec = mujoco.MjSpec()
        spec.worldbody.add_geom(type=GEOM.mjGEOM_SPHERE, size=[0.5, 0, 0], pos=[0, 0, -height])
        spec.worldbody.add_camera(name="eye")
        model = spec.compile()
        _, geoms, eye = posed(model)
        lens = Optics.of_camera(model, 0, 16, 8).lens()
        tracer = Tracer(model, lens)
        hits = tracer.hits(geoms, eye)
        np.testing.assert_allclose(hits.depth[0, 4, 8], height - 0.5, atol=0.02)
        assert tracer.normals(hits, geoms, eye).shape == (1, 8, 16, 3)
        assert float(Painter(model, lens).paint(geoms, eye).max()) > 0.0
        assert (tracer.segmentation(hits) >= -1).all()

    look(2.0)
    compiled: list[str] = []

    def note(event: str, _: float, **__: object) -> None:
        if "backend_compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        jax.jit(lambda x: 3 * x + 17)(1.0)
        assert compiled
        compiled.clear()
        look(1.5)
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not compiled
