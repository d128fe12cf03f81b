"""Crazyflow's environments: ids, spaces, rewards as functions of what is observed, subclasses."""

from __future__ import annotations

from math import pi
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import crazyflow_ros.envs  # noqa: F401  # registers the ids with a prefix
from crazyflow_ros.compat.crazyflow import envs
from crazyflow_ros.compat.crazyflow.envs import NormalizeActions, ReachPosEnv
from crazyflow_ros.compat.crazyflow.envs.drone_env import DroneEnv
from crazyflow_ros.compat.crazyflow.utils import leaf_replace

MOTION = {"pos": (3,), "quat": (4,), "vel": (3,), "ang_vel": (3,)}


def length(vectors: Any) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


@pytest.mark.parametrize("prefix", ["", "crazyflow_ros/"])
@pytest.mark.parametrize(
    ("name", "goal", "size"),
    [
        ("DroneReachPos-v0", "difference_to_goal", 3),
        ("DroneReachVel-v0", "difference_to_target_vel", 3),
        ("DroneLanding-v0", "difference_to_goal", 3),
        ("DroneFigureEightTrajectory-v0", "local_samples", 30),
    ],
)
def test_a_script_for_crazyflow_finds_its_environments(
    name: str, goal: str, size: int, prefix: str
) -> None:
    plain = gymnasium.make_vec(f"{prefix}{name}", num_envs=2, freq=50, max_episode_time=0.5)
    spaces: Any = plain.unwrapped.single_observation_space
    assert {key: space.shape for key, space in spaces.items()} == MOTION | {goal: (size,)}
    high = plain.unwrapped.single_action_space.high
    np.testing.assert_allclose(high, [pi / 2, pi / 2, pi / 2, 0.48], rtol=1e-6)
    env = NormalizeActions(plain)
    assert (env.single_action_space.high == 1).all()
    hover = np.tile(np.float32([0.02, -0.01, 0, -0.09]), (2, 1))
    env.reset(seed=0)
    for i in range(26):
        obs, reward, terminated, truncated, _ = env.step(hover)
        obs = {key: np.asarray(x) for key, x in obs.items()}
        assert plain.observation_space.contains(obs)
        if name == "DroneReachVel-v0":
            expected = np.exp(-length(obs[goal]))
        else:
            expected = np.exp(-2 * length(obs[goal][:, :3]))
        if name == "DroneLanding-v0":
            expected *= np.exp(-2 * length(obs["vel"]))
            goals = obs[goal] + obs["pos"]
            np.testing.assert_allclose(goals, [[0, 0, 0.1]] * 2, atol=1e-6)
        np.testing.assert_allclose(reward, expected, atol=1e-6)
        assert not terminated.any() and truncated.all() == truncated.any() == (i == 24)
    env.close()


def test_the_floor_costs_one_and_other_starts_and_goals_can_be_drawn() -> None:
    masks = []

    def lower(data: Any, _: Any, mask: Any) -> Any:
        masks.append(mask)
        pos = data.states.pos.at[..., 2].set(0.02)
        return data.replace(states=leaf_replace(data.states, mask, pos=pos))

    env = ReachPosEnv(num_envs=2, freq=50)
    goal = {"goal_pos_min": np.array([0.0, 0.0, 1.0]), "goal_pos_max": np.array([0.0, 0.0, 1.0])}
    obs, _ = env.reset(seed=3, options=goal)
    away = np.array([0.0, 0.0, 1.0]) - np.asarray(obs["pos"])
    np.testing.assert_allclose(obs["difference_to_goal"], away, atol=1e-6)

    class Own(DroneEnv):
        def reward(self) -> Any:
            return self.sim.data.states.pos[:, 0, 2]

    own = Own(num_envs=2, freq=50, reset_randomization=lower)
    obs, _ = own.reset(seed=0)
    np.testing.assert_allclose(obs["pos"], [[0, 0, 0.02]] * 2, atol=1e-6)
    least = np.tile(own.single_action_space.low * [0, 0, 0, 1], (2, 1))
    for _ in range(10):
        *_, terminated, _, _ = own.step(least)
        if terminated.any():
            break
    assert terminated.all() and masks[0] is None and masks[1].shape == (2,)
    env.sim.data = own.sim.data
    assert (np.asarray(env.reward()) == -1).all()


def test_environments_of_users() -> None:
    class Own(DroneEnv):
        def reward(self) -> Any:
            return self.sim.data.states.pos[:, 0, 2]

    own = Own(num_envs=3, freq=50, max_episode_time=0.1)
    obs, _ = own.reset(seed=1)
    assert (np.asarray(obs["pos"]) == np.asarray(own.reset(seed=1)[0]["pos"])).all()
    ends = []
    for _ in range(7):
        obs, reward, _, truncated, _ = own.step(own.action_space.sample())
        np.testing.assert_array_equal(reward, obs["pos"][:, 2])
        ends.append(bool(truncated.all()))
    assert ends == [False] * 4 + [True, False, False]
    with pytest.warns(UserWarning, match="multiple of env frequency"):
        Own(freq=70)


@pytest.mark.parametrize("name", ["ReachPosEnv", "LandingEnv", "ReachVelEnv", "FigureEightEnv"])
def test_a_compiled_step_gives_what_the_methods_of_a_subclass_give(name: str) -> None:
    kind = getattr(envs, name)
    compiled, plain = kind(num_envs=3, freq=50), type("Mine", (kind,), {})(num_envs=3, freq=50)
    plain.max_episode_time = compiled.max_episode_time = 0.1
    for env in (compiled, plain):
        env.jax_key = jax.random.key(1)
        env.reset(seed=1)
    rng = np.random.default_rng(0)
    for i in range(12):
        if i == 3:  # what the compiled function holds as constants may change
            plain.max_episode_time = compiled.max_episode_time = 0.12
        action = rng.uniform(-0.3, 0.4, (3, 4)).astype(np.float32)
        a, b = compiled.step(action), plain.step(action)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-6), a, b)
    assert compiled._pure and not plain._pure
