"""Environments behind the interfaces of other libraries, checked by these libraries."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import crazyflow_ros.envs
from crazyflow_ros.envs import Hover, QuadrotorVectorEnv

SMALL: dict[str, Any] = {"drone": "cf21B_500", "dynamics": "so_rpy", "freq": 100}


def test_gymnasium_accepts_the_environment_of_one_world() -> None:
    env = gymnasium.make("crazyflow_ros/Hover-v0", max_episode_steps=7, limit=1.5, **SMALL)
    assert env.unwrapped.worlds.task == Hover(limit=1.5)
    check_env(env.unwrapped, skip_render_check=True)
    with pytest.raises(ValueError, match="reset_mask"):
        env.unwrapped.reset(options={"reset_mask": np.ones(1, bool)})
    env.reset(seed=1)
    ends = [env.step(np.zeros(4))[3] for _ in range(7)]
    assert ends == [False] * 6 + [True]
    env.close()
    assert set(crazyflow_ros.envs.registration.TASKS) == {
        "Carry", "FigureEight", "Hover", "Landing", "Race", "Reach", "Recovery", "Velocity",
    }  # fmt: skip


def test_pettingzoo_accepts_swarms() -> None:
    testing = pytest.importorskip("pettingzoo.test", reason="PettingZoo is not installed")
    from crazyflow_ros.compat.pettingzoo import QuadrotorSwarm

    swarm = QuadrotorSwarm(Hover(), n_drones=3, **SMALL)
    testing.parallel_api_test(swarm, num_cycles=200)
    obs, _ = swarm.reset(seed=0)
    again, _ = swarm.reset(seed=0)
    assert list(obs) == ["cf0", "cf1", "cf2"]
    for name in obs:
        np.testing.assert_array_equal(obs[name], again[name])
    pos = np.array(swarm.worlds.sim.data.states.pos[0])
    apart = np.linalg.norm(pos[:, None] - pos, axis=-1) + 9 * np.eye(3)
    assert apart.min() > 0.3  # drones start beside each other
    actions = dict.fromkeys(swarm.agents, np.zeros(4))
    _, rewards, *_ = swarm.step(actions)
    assert len(set(rewards.values())) == 3
    with pytest.raises(ValueError, match="cf1"):
        swarm.step({"cf0": np.zeros(4), "cf2": np.zeros(4)})
    with pytest.raises(ValueError, match="n_drones"):
        QuadrotorSwarm(Hover(), n_drones=1)


def test_agents_of_a_swarm_end_by_themselves() -> None:
    testing = pytest.importorskip("pettingzoo.test", reason="PettingZoo is not installed")
    from crazyflow_ros.compat.pettingzoo import QuadrotorSwarm

    swarm = QuadrotorSwarm(Hover(limit=0.6), n_drones=3, ending="alone", **SMALL)
    testing.parallel_api_test(swarm, num_cycles=200)
    swarm.reset(seed=0)
    left = [list(swarm.agents)]
    while len(left) < 100 and swarm.agents:
        actions = {name: np.zeros(4, np.float32) for name in swarm.agents}
        if "cf1" in actions:
            actions["cf1"][3] = -1  # falls
        _, rewards, ended, late, _ = swarm.step(actions)
        assert set(rewards) == set(left[-1]) and not any(late.values())
        assert [name for name in left[-1] if not ended[name]] == swarm.agents
        left.append(list(swarm.agents))
        if "cf1" not in swarm.agents:
            break
    assert left[-1] == ["cf0", "cf2"] and rewards["cf1"] < 0


def test_stable_baselines_learns() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from crazyflow_ros.compat.stable_baselines import StableBaselinesEnv

    worlds = QuadrotorVectorEnv(8, Hover(), autoreset="same_step", max_episode_steps=20, **SMALL)
    env = StableBaselinesEnv(worlds)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0)
    model.learn(2 * 32 * 8)
    assert model.num_timesteps == 2 * 32 * 8 and len(model.ep_info_buffer) == 0
    env.seed(3)
    first = env.reset()
    env.seed(3)
    np.testing.assert_array_equal(first, env.reset())
    with pytest.raises(ValueError, match="reset_mask"):
        env.set_options({"reset_mask": np.ones(8, bool)})
    for _ in range(20):
        _, _, done, infos = env.step(np.zeros((8, 4), np.float32))
    assert done.all() and infos[0]["TimeLimit.truncated"]
    assert infos[0]["terminal_observation"].shape == (13,)
    with pytest.raises(ValueError, match="autoreset"):
        StableBaselinesEnv(QuadrotorVectorEnv(1, Hover(), **SMALL))
