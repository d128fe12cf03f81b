"""Crazyflow's environments: ids, spaces, and rewards as functions of what is observed."""

from __future__ import annotations

from math import pi
from typing import Any

import gymnasium
import numpy as np
import pytest

from crazyflow_ros.envs import DroneEnv, LandingEnv, NormalizeActions, ReachPosEnv
from crazyflow_ros.envs.crazyflow import register

MOTION = {"pos": (3,), "quat": (4,), "vel": (3,), "ang_vel": (3,)}


def length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


@pytest.mark.parametrize(
    ("name", "goal", "size"),
    [
        ("DroneReachPos-v0", "difference_to_goal", 3),
        ("DroneReachVel-v0", "difference_to_target_vel", 3),
        ("DroneLanding-v0", "difference_to_goal", 3),
        ("DroneFigureEightTrajectory-v0", "local_samples", 30),
    ],
)
def test_a_script_for_crazyflow_finds_its_environments(name: str, goal: str, size: int) -> None:
    plain = gymnasium.make_vec(f"crazyflow_ros/{name}", num_envs=2, freq=50, max_episode_time=0.5)
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
        assert all(obs[key].shape == (2, *shape) for key, shape in MOTION.items())
        if name == "DroneReachVel-v0":
            expected = np.exp(-length(obs[goal]))
        else:
            expected = np.exp(-2 * length(obs[goal][:, :3]))
        if name == "DroneLanding-v0":
            expected *= np.exp(-2 * length(obs["vel"]))
            goals = obs[goal] + obs["pos"]
            np.testing.assert_allclose(goals, [[0, 0, 0.1]] * 2, atol=1e-6)
        begins = i == 25
        np.testing.assert_allclose(reward, (1 - begins) * expected, atol=1e-6)
        assert not terminated.any() and truncated.all() == truncated.any() == (i == 24)
    env.close()


def test_crazyflow_s_own_ids_are_registered_on_demand() -> None:
    names = [name.partition("/")[2] for name in gymnasium.registry if "/Drone" in name]
    assert len(names) == 4
    assert not gymnasium.registry.keys() & set(names)
    try:
        gymnasium.register(id=names[-1], vector_entry_point="elsewhere:Env")
        with pytest.raises(ValueError, match=f"{names[-1]} is registered already, by elsewhere"):
            register()
        assert gymnasium.registry.keys() & set(names) == {names[-1]}
        del gymnasium.registry[names[-1]]
        for _ in range(2):  # a second time changes nothing
            register()
            assert gymnasium.registry.keys() >= set(names)
        env = gymnasium.make_vec(names[0], num_envs=2, freq=50)
        assert isinstance(env.unwrapped, DroneEnv)
        env.close()
    finally:
        for name in names:
            gymnasium.registry.pop(name, None)


def test_the_floor_costs_one_and_other_starts_can_be_drawn() -> None:
    def lower(data: Any, _: Any, mask: Any) -> Any:
        assert mask.shape == (1,)  # each world for itself
        pos = data.states.pos.at[..., 2].set(0.02)
        return data.replace(states=data.states.replace(pos=pos))

    env = ReachPosEnv(num_envs=2, freq=50, reset_randomization=lower)
    obs, _ = env.reset(seed=0)
    np.testing.assert_allclose(obs["pos"], [[0, 0, 0.02]] * 2, atol=1e-6)
    least = np.tile(env.single_action_space.low * [0, 0, 0, 1], (2, 1))
    for _ in range(10):
        _, reward, terminated, *_ = env.step(least)
        if terminated.any():
            break
    assert terminated.all() and (reward == -1).all()
    with pytest.raises(ValueError, match="no option of a reset 'vel_min', only reset_mask"):
        env.reset(options={"vel_min": -1})
    with pytest.raises(ValueError, match="action_freq must divide"):
        LandingEnv(freq=70)
