"""Contacts of MJX against MuJoCo's own distances, for thousands of sizes and poses."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.mjx_contacts import collision, is_exact
from crazyflow_ros.scene.mjx_internals import contacts, geom_pairs, has_collision_fn
from crazyflow_ros.scene.mjx_scene import fitted_to_mjx

N = 3000
FEW = 500  # where the reference is slow
PRECISE = '<option ccd_tolerance="1e-9" ccd_iterations="200"/>'
HULL = (
    '<asset><mesh name="hull" vertex="0 0 0  .5 0 0  0 .1 0  0 0 .4  .3 .2 .1  .1 .1 .3"/>'
    '<hfield name="hills" nrow="6" ncol="6" size=".5 .5 .3 .1" elevation="'
    + " ".join(str((7 * i * i) % 11) for i in range(36))
    + f'"/></asset>{PRECISE}'
)
SHAPES = ["plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"]
"""In the order of `mjtGeom`."""
collide = jax.jit(collision)


def pair(first: str, second: str) -> mujoco.MjModel:
    """Two geoms that can touch."""
    more = {"mesh": 'mesh="hull"', "hfield": 'hfield="hills"'}
    one, other = (f'type="{x}" ' + more.get(x, 'size="1 1 1"') for x in (first, second))
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{HULL}<worldbody><geom name='a' {one}/>"
        f"<body><freejoint/><geom name='b' {other}/></body></worldbody></mujoco>"
    )


def rotations(rng: np.random.Generator, n: int) -> np.ndarray:
    quats, matrices = rng.normal(size=(n, 4)), np.empty((n, 9))
    for quat, matrix in zip(quats / np.linalg.norm(quats, axis=1, keepdims=True), matrices):
        mujoco.mju_quat2Mat(matrix, quat)
    return matrices.reshape(n, 3, 3)


def near(model: mujoco.MjModel, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, positions and axes of both geoms, at distances at which many overlap."""
    rng = np.random.default_rng(seed)
    sizes = 10 ** rng.uniform(-2, -0.4, (N, 2, 3))
    reach = np.linalg.norm(sizes, axis=2)
    for geom in range(2):
        if model.geom_dataid[geom] >= 0:
            sizes[:, geom], reach[:, geom] = model.geom_size[geom], model.geom_rbound[geom]
    way = rng.normal(size=(N, 3))
    way *= (0.6 * rng.uniform(size=N) * reach.sum(axis=1) / np.linalg.norm(way, axis=1))[:, None]
    pos = np.stack([np.zeros((N, 3)), way], axis=1)
    return sizes, pos, np.stack([rotations(rng, N), rotations(rng, N)], axis=1)


def by_mjx(model: mujoco.MjModel, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance (N,) and normal (N, 3) of the deepest contact in each configuration."""
    taken, data = mjx.put_model(model), mjx.put_data(model, mujoco.MjData(model))

    @jax.jit
    @jax.vmap
    def found(sizes: jax.Array, pos: jax.Array, axes: jax.Array) -> tuple[jax.Array, jax.Array]:
        posed = data.replace(geom_xpos=pos, geom_xmat=axes)
        contact = contacts(collision(taken.replace(geom_size=sizes), posed))
        deepest = jnp.argmin(contact.dist)
        return contact.dist[deepest], contact.frame[deepest, 0]

    distance, normal = found(*(jnp.asarray(x, jnp.float32) for x in given))
    return np.asarray(distance), np.asarray(normal)


def by_mujoco(model: mujoco.MjModel, *given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same from `mj_geomDistance`."""
    data, distances, normals = mujoco.MjData(model), np.empty(N), np.empty((N, 3))
    model.geom_rbound[:] = np.where(model.geom_type == 0, 0, 10)
    for i, (sizes, pos, axes) in enumerate(zip(*given)):
        model.geom_size[:], data.geom_xpos[:] = sizes, pos
        data.geom_xmat[:] = axes.reshape(2, 9)
        ends = np.zeros(6)
        distances[i] = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, ends)
        way = (ends[3:] - ends[:3]) * np.sign(distances[i])
        normals[i] = way / max(np.linalg.norm(way), 1e-12)
    return distances, normals


JUDGED = [
    (one, other)
    for i, one in enumerate(SHAPES)
    for j, other in enumerate(SHAPES)
    if i <= j and has_collision_fn(i, j) and is_exact((i, j)) and one != "hfield"
]


@pytest.mark.parametrize("shapes", JUDGED, ids=" and ".join)
def test_contacts_are_those_of_mujoco(shapes: tuple[str, str]) -> None:
    model = pair(*shapes)
    given = near(model, sum(map(SHAPES.index, shapes)))
    # MuJoCo's own function of this pair is wrong for deep overlaps.
    if shapes == ("capsule", "box"):
        given = tuple(part[:FEW] for part in given)
    n = len(given[0])
    distance, normal = by_mjx(model, *given)
    if n == FEW:
        true, direction = capsules_and_boxes(*given)
    else:
        true, direction = by_mujoco(model, *given)
    # MuJoCo finds the depth of ellipsoids in a polytope, that of two boxes to 0.1 %.
    exact = 2e-3 if "ellipsoid" in shapes else 5e-4 if shapes == ("box", "box") else 2e-5
    assert 0.1 * n < (true < 0).sum() < 0.95 * n
    sure = np.abs(true) > exact
    np.testing.assert_array_equal((distance < 0)[sure], (true < 0)[sure])
    touching = true < -exact
    np.testing.assert_allclose(distance[touching], true[touching], atol=exact)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-5)
    shallow = touching & (true > -1e-2)  # deeper ones may have two nearest ways out
    assert shallow.sum() > 10
    assert (normal * direction).sum(axis=1)[shallow].min() > 0.97


def capsules_and_boxes(
    sizes: np.ndarray, pos: np.ndarray, axes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The reference of `by_mujoco`, with meshes in place of boxes."""
    n = len(sizes)
    distances, normals = np.empty(n), np.empty((n, 3))
    for i in range(n):
        half = sizes[i, 1]
        corners = " ".join(
            f"{x * half[0]} {y * half[1]} {z * half[2]}"
            for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)
        )  # fmt: skip
        text = f'<mujoco>{PRECISE}<asset><mesh name="hull" vertex="{corners}"/></asset>'
        model = mujoco.MjModel.from_xml_string(
            f"{text}<worldbody><geom type='capsule' size='{sizes[i, 0, 0]} {sizes[i, 0, 1]}'/>"
            "<body><freejoint/><geom type='mesh' mesh='hull'/></body></worldbody></mujoco>"
        )
        data, ends, inertial = mujoco.MjData(model), np.zeros(6), np.empty(9)
        mujoco.mju_quat2Mat(inertial, model.geom_quat[1])
        data.geom_xpos[:] = pos[i]
        data.geom_xmat[0] = axes[i, 0].ravel()
        data.geom_xmat[1] = (axes[i, 1] @ inertial.reshape(3, 3)).ravel()
        distances[i] = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, ends)
        way = (ends[3:] - ends[:3]) * np.sign(distances[i])
        normals[i] = way / max(np.linalg.norm(way), 1e-12)
    return distances, normals


def test_balls_touch_hills_as_in_mujoco() -> None:
    """Whose own contacts are the reference: it measures no distances of height fields."""
    model, rng = pair("hfield", "sphere"), np.random.default_rng(11)
    data = mujoco.MjData(model)
    sizes = np.tile(np.stack([model.geom_size[0], [0.05, 0, 0]]), (N, 1, 1))
    pos = np.stack([np.zeros((N, 3)), rng.uniform([-0.5, -0.5, 0], [0.5, 0.5, 0.4], (N, 3))], 1)
    model.geom_size[1, 0], model.geom_rbound[1] = 0.05, 0.05
    expected = np.full(N, np.inf)
    for i in range(N):
        data.qpos[:3] = pos[i, 1]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        expected[i] = min(data.contact.dist, default=np.inf)
    distance, _ = by_mjx(model, sizes, pos, np.tile(np.eye(3), (N, 2, 1, 1)))
    sure = np.abs(expected) > 1e-3
    np.testing.assert_array_equal((distance < 0)[sure], (expected < 0)[sure])
    assert 500 < (expected < 0).sum() < N - 500


@pytest.mark.parametrize("shape", ["cylinder", "ellipsoid"])
def test_distances_have_their_derivatives(shape: str) -> None:
    """Everywhere, also on the axes and inside, where MJX's own have no meaning."""
    model = pair("sphere", shape)
    taken, data = mjx.put_model(model), mjx.put_data(model, mujoco.MjData(model))
    sizes = jnp.array([[0.1, 0, 0], [0.2, 0.3, 0.25]])

    def distance(pos: jax.Array) -> jax.Array:
        upright = jnp.tile(jnp.eye(3), (2, 1, 1))
        posed = data.replace(geom_xpos=jnp.stack([pos, jnp.zeros(3)]), geom_xmat=upright)
        return contacts(collision(taken.replace(geom_size=sizes), posed)).dist[0]

    grid = np.array(np.meshgrid(*3 * [[-0.4, -0.11, 0, 0.07, 0.35]])).reshape(3, -1).T
    slopes = jax.jit(jax.vmap(jax.grad(distance)))
    slope = np.asarray(slopes(jnp.asarray(grid)))
    assert np.isfinite(slope).all()
    _, normal = by_mjx(
        model,
        np.tile(sizes, (len(grid), 1, 1)),
        np.stack([grid, 0 * grid], axis=1),
        np.tile(np.eye(3), (len(grid), 2, 1, 1)),
    )
    on_axis = (grid == 0).any(axis=1)
    np.testing.assert_allclose(slope[~on_axis], -normal[~on_axis], atol=1e-4)


def test_only_the_nearest_pairs_are_exact_where_mjx_looks_at_no_others() -> None:
    """As in large swarms, with slots that several pairs share."""
    cans = "".join(
        f'<body pos="{x} 0 0"><freejoint/><geom name="can{x}" type="cylinder" size=".2 .1"/></body>'
        for x in range(4)
    )
    balls = "".join(
        f'<body pos="{x + 0.31} 0 0.05"><freejoint/><geom name="ball{x}" size=".12"/></body>'
        for x in (1, 2, 9)
    )
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><custom><numeric name='max_geom_pairs' data='5'/></custom>"
        f"<worldbody>{cans}{balls}</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found = contacts(collide(mjx.put_model(model), mjx.put_data(model, data)))
    deepest = {}
    for geoms, distance in zip(np.asarray(found.geom).tolist(), np.asarray(found.dist).tolist()):
        names = frozenset(model.geom(geom).name for geom in geoms)
        if distance < 0 and any("ball" in name for name in names):
            deepest[names] = min(distance, deepest.get(names, 0.0))
    expected = {frozenset({f"can{x}", f"ball{x}"}): pytest.approx(-0.01, abs=1e-5) for x in (1, 2)}
    assert deepest == expected


ROUGH = [
    (one, other)
    for i, one in enumerate(SHAPES)
    for j, other in enumerate(SHAPES)
    if i <= j and has_collision_fn(i, j) and not is_exact((i, j))
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shapes", [*ROUGH, ("sphere", "cylinder")], ids=" and ".join)
def test_what_stays_rough_is_said(shapes: tuple[str, str]) -> None:
    spec = build_spec("cf2x_L250", ["0"], mocap=True)
    model = pair(*shapes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted_to_mjx(spec, model, [])
    said = [str(warning.message) for warning in caught]
    what = "contacts between these shapes only roughly, and not all of them"
    text = f"MJX finds {what}: {' and '.join(sorted(shapes))}"
    assert said == ([text] if shapes in ROUGH else [])


def test_no_contact_is_left_out_for_its_depth() -> None:
    """MJX would choose the deepest ones by distances of its own."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><custom><numeric name='max_contact_points' data='1'/></custom><worldbody>"
        "<geom type='cylinder' size='.1 .1'/><geom pos='1 0 0' size='.1'/>"
        "<body pos='.5 0 0'><freejoint/><geom size='.45'/></body></worldbody></mujoco>"
    )
    fitted, data = fitted_to_mjx(mujoco.MjSpec(), model, [])
    mujoco.mj_forward(fitted, data)
    taken = mjx.put_model(fitted), mjx.put_data(fitted, data)
    found = np.asarray(contacts(collide(*taken)).dist)
    np.testing.assert_allclose(np.sort(found), [-0.05, -0.05], atol=1e-6)
    assert len(list(geom_pairs(fitted))) == 2
