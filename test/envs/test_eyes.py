"""Pictures in observations: they show each world's own gates, compared with MuJoCo's rays."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.envs import (
    Configuration,
    EyeErrors,
    QuadrotorEnv,
    QuadrotorVectorEnv,
    Race,
    Recovery,
)
from crazyflow_ros.envs.beginning import ORIGIN
from crazyflow_ros.envs.eyes import MOUNT
from crazyflow_ros.policy import Eye
from crazyflow_ros.sim import SimData

N = 4
EYE = Eye(width=24, height=18, far=5.0)
NOISE = 0.05
OPTIONS: dict[str, Any] = {"freq": 100, "action": "rotor_vel", "observation": ("body_rates",)}


@pytest.fixture(scope="module")
def worlds() -> QuadrotorVectorEnv:
    """Drones before gates that are elsewhere in each world, with cameras that are, too."""
    race = Race(anywhere=True, shift=(0.3, 0.3, 0.2), turn=0.4)
    errors = EyeErrors(shift=0.003, turn=0.1, noise=NOISE)
    return QuadrotorVectorEnv(N, race, eye=EYE, eye_errors=errors, **OPTIONS)


def depth_by_mujoco(env: QuadrotorVectorEnv, state: SimData, world: int) -> np.ndarray:
    """Depth [m] of the pixels of a world, whose gates and camera are moved in MuJoCo's model."""
    sim, task = env.sim, env.task
    model, states = sim.mj_model, state.states
    data = mujoco.MjData(model)
    moves = np.asarray(state.plugins[ORIGIN])[world, 0, 1:].reshape(-1, 4)
    rest = model.body_pos.copy(), model.body_quat.copy()
    for i, (*shift, turn) in enumerate(moves):
        gate = model.body(f"gate{i}")
        about = Rotation.from_euler("z", turn)
        before = Rotation.from_quat(np.roll(gate.quat, -1))
        gate.pos = task.gates.centre[i] + about.apply(gate.pos - task.gates.centre[i]) + shift
        gate.quat = np.roll((about * before).as_quat(), 1)
    drone = model.body("drone:0")
    quat = np.roll(np.asarray(states.quat)[world, 0], 1)
    data.mocap_pos[drone.mocapid[0]], data.mocap_quat[drone.mocapid[0]] = (
        np.asarray(states.pos)[world, 0],
        quat,
    )
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    model.body_pos[:], model.body_quat[:] = rest
    camera, mount = model.camera("fpv_cam:0"), np.asarray(state.plugins[MOUNT])[world, 0]
    attitude = Rotation.from_quat(np.asarray(states.quat)[world, 0])
    axes = data.cam_xmat[camera.id].reshape(3, 3)
    axes = (attitude * Rotation.from_rotvec(mount[3:]) * attitude.inv()).as_matrix() @ axes
    place = data.cam_xpos[camera.id] + attitude.apply(mount[:3])
    focal = EYE.height / 2 / np.tan(np.radians(EYE.fovy) / 2)
    rows, columns = np.mgrid[: EYE.height, : EYE.width] + 0.5
    x, y = (columns - EYE.width / 2) / focal, (EYE.height / 2 - rows) / focal
    rays = np.stack([x, y, -np.ones_like(x)], axis=-1).reshape(-1, 3) @ axes.T
    geom, found = np.zeros(1, np.int32), []
    groups = np.array([1, 1, 1, 0, 0, 0], np.uint8)
    for ray in rays:
        length = mujoco.mj_ray(model, data, place, ray, groups, 1, drone.id, geom, None)
        found.append(length if length >= 0 else np.inf)  # in multiples of the ray: along the axis
    return np.minimum(np.reshape(found, (EYE.height, EYE.width)), EYE.far)


def test_pictures_show_the_gates_of_each_world(worlds: QuadrotorVectorEnv) -> None:
    seen, _ = worlds.reset(seed=3)
    assert seen in worlds.observation_space
    state, noisy = worlds.sim.data, seen["depth"][..., 0]
    shifts = np.asarray(state.plugins[ORIGIN])[:, 0, 1:]
    assert np.ptp(shifts, axis=0).min() > 0 and np.ptp(state.plugins[MOUNT], axis=0).min() > 0
    for world in range(N):
        expected = depth_by_mujoco(worlds, state, world)
        inside = expected < 0.8 * EYE.far  # beyond, noise is clipped
        assert inside.mean() > 0.1
        ratio = noisy[world][inside] / expected[inside] - 1
        off = np.abs(ratio) > 5 * NOISE  # at edges
        assert off.mean() < 0.02
        assert ratio[~off].std() == pytest.approx(NOISE, rel=0.3) and abs(ratio[~off].mean()) < 0.02
        assert (noisy[world][expected == EYE.far] > EYE.far * (1 - 5 * NOISE)).mean() > 0.98


def test_pictures_repeat_with_the_seed_and_differ_in_each_step(worlds: QuadrotorVectorEnv) -> None:
    actions = np.zeros((N, 4), np.float32)
    runs = [[worlds.reset(seed=7)[0], *(worlds.step(actions)[0] for _ in range(3))] for _ in "ab"]
    for a, b in zip(*runs):
        np.testing.assert_array_equal(a["depth"], b["depth"])
        assert a in worlds.observation_space
    first, second = runs[0][0]["depth"], runs[0][1]["depth"]  # it has fallen for 20 ms
    changed = (first != second) & (first < EYE.far) & (second < EYE.far)
    assert changed.mean() > 0.2
    state = worlds.sim.data
    look = jax.jit(worlds.environment.eyes)  # also in transformations
    pictures = look(state)
    np.testing.assert_allclose(pictures[:, 0], runs[1][3]["depth"], atol=1e-4)
    moved = state.replace(plugins=state.plugins | {MOUNT: jnp.zeros((N, 1, 6))})
    assert (np.asarray(worlds.environment.eyes(moved)) != np.asarray(pictures)).mean() > 0.05


def test_one_world_shows_colors_to_gymnasium() -> None:
    env = gymnasium.make(
        "crazyflow_ros/Recovery-v0", eye=Eye("rgb", 12, 8), dynamics="so_rpy", freq=100
    )
    assert isinstance(env.observation_space, gymnasium.spaces.Dict)
    seen, _ = env.reset(seed=1)  # Gymnasium's own checker compares it with the space
    assert seen["rgb"].shape == (8, 12, 3) and seen["rgb"].dtype == np.uint8
    assert len(np.unique(seen["rgb"])) > 1
    seen, *_ = env.step(env.action_space.sample())
    assert seen in env.observation_space


def test_the_end_of_an_episode_is_seen_beside_the_next_beginning() -> None:
    """Compared with worlds that are not reset; the episodes of both end by their time."""
    options: dict[str, Any] = {"eye": Eye("rgb", 12, 8), "dynamics": "so_rpy", "freq": 100}
    envs = [
        QuadrotorVectorEnv(2, Recovery(), autoreset=mode, max_episode_steps=4, **options)
        for mode in ("same_step", "disabled")
    ]
    for env in envs:
        env.reset(seed=0)
    for _ in range(4):
        (seen, *_, info), (last, *_) = (env.step(np.zeros((2, 4))) for env in envs)
    assert info["_final_obs"].all()
    for i in range(2):
        for name in ("motion", "rgb"):
            np.testing.assert_array_equal(info["final_obs"][i][name], last[name][i])
            assert (seen[name][i] != last[name][i]).any()
    env = envs[0].environment
    state, _ = env.reset(jax.random.key(0))
    shown = set()
    for _ in range(4):
        state, step = env.step(state, jnp.zeros((2, 4)))
        shown.add(bool((step.final_observation["rgb"] == step.observation["rgb"]).all()))
    assert shown == {True, False}  # until the end, both are the same


def test_what_cannot_be_seen_is_refused() -> None:
    for build, named in (
        (lambda: Configuration(eye=Eye("rgb"), eye_errors=EyeErrors(noise=0.1)), "noise=0.1"),
        (lambda: QuadrotorEnv(Recovery(), eye=Eye(camera="tail"), dynamics="so_rpy"), "'tail'"),
        (lambda: EyeErrors(turn=-1), "turn .*-1"),
    ):
        with pytest.raises(ValueError, match=named):
            build()
