"""The ground below points, beside MuJoCo's rays."""

from __future__ import annotations

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from crazyflow_ros.dynamics.ground import ground_below
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.scene import obstacles_of
from crazyflow_ros.sim import Sim

SHAPES = {
    "sphere": "0.7",
    "capsule": "0.3 0.5",
    "cylinder": "0.4 0.6",
    "box": "0.3 0.5 0.7",
    "plane": "0 0 .1",
}
N = 400


def model_of(rng: np.random.Generator, kind: str, upright: bool) -> mujoco.MjModel:
    geoms = ""
    for _ in range(1 if kind == "plane" else 4):
        quat = (1, 0, 0, 0) if upright else rng.normal(size=4)
        if kind == "plane":
            quat = (1, *rng.uniform(0.05, 0.1, 3))
        pos = rng.uniform(-1, 1, 3)
        place, turn = (" ".join(map(str, x)) for x in (pos, quat))
        geoms += f'<geom type="{kind}" size="{SHAPES[kind]}" pos="{place}" quat="{turn}"/>'
    geoms += '<geom type="plane" size="9 9 .1" pos="0 0 -3"/>'
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("upright", [True, False])
@pytest.mark.parametrize("kind", SHAPES)
def test_the_ground_is_where_a_ray_of_mujoco_hits(kind: str, upright: bool) -> None:
    rng = np.random.default_rng(len(kind) + upright)
    model = model_of(rng, kind, upright)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    points = rng.uniform((-1.5, -1.5, 2.5), (1.5, 1.5, 4), (N, 3))
    down, hit = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
    away = [mujoco.mj_ray(model, data, p, down, None, 1, -1, hit) for p in points]
    params = params_with(model, -3.0)
    found = ground_below(tuple(jnp.asarray(points.T[:, None])), params)  # type: ignore[arg-type]
    assert found is not None
    np.testing.assert_allclose(found[0], points[:, 2] - away, atol=1e-6)


def params_with(model: mujoco.MjModel, floor: float) -> RigidBody:
    params = Sim().data.params
    return params.replace(
        obstacles=obstacles_of(model, floor=floor, slots=lambda n: n + 2).obstacles,
        floor=jnp.full(1, floor),
    )


def test_below_a_table_the_ground_is_the_floor_and_inside_it_is_where_the_drone_is() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="box" size="1 1 .1" pos="0 0 1"/></worldbody></mujoco>'
    )
    pos = tuple(jnp.array([[x, x, x]]) for x in (0.0,) * 2), jnp.array([[0.5, 1.05, 1.5]])
    found = ground_below((*pos[0], pos[1]), params_with(model, 0.0))  # type: ignore[arg-type]
    assert found is not None
    np.testing.assert_allclose(found, [[0.0, 1.05, 1.1]], atol=1e-6)


def test_without_obstacles_there_is_only_the_floor() -> None:
    params = Sim().data.params
    assert ground_below((jnp.zeros((1, 1)),) * 3, params) is None
