"""Short programs of users of other libraries: each trains, collects or records with ours.

docs/guides/environments.md has the versions with which they have run. `make setup` installs
Gymnasium and PettingZoo; with the others installed beside them, `pytest
test/envs/test_libraries.py` runs all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paths import ROOT

from crazyflow_ros.envs import (
    Environment,
    Hover,
    ObservationTerm,
    QuadrotorEnv,
    QuadrotorVectorEnv,
)
from crazyflow_ros.policy import Eye

SMALL: dict[str, Any] = {"drone": "cf21B_500", "dynamics": "so_rpy", "freq": 100}
NAME = "crazyflow_ros/Hover-v0"


def needed(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not part of make setup")


def weights(module: Any) -> np.ndarray:
    """The parameters of a module of torch."""
    return np.concatenate([x.detach().numpy().ravel().copy() for x in module.parameters()])


def changed(before: np.ndarray, after: np.ndarray) -> bool:
    return bool(np.isfinite(after).all() and (before != after).any())


class SeenHover(Hover):
    """Hovering, with the mass for critics."""

    @property
    def terms(self) -> Any:
        mass = ObservationTerm(lambda now: now.parameter("mass"), scale=30.0)
        return super().terms.__class__(**vars(super().terms) | {"privileged": {"mass": mass}})


@pytest.mark.parametrize("kind", ["depth", "rgb"])
def test_stable_baselines_learns_by_pictures(kind: str) -> None:
    sb3 = needed("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env

    from crazyflow_ros.compat.stable_baselines import StableBaselinesEnv

    options = SMALL | {"eye": Eye(kind, width=48, height=40)}
    check_env(QuadrotorEnv(Hover(), **options), warn=False)
    worlds = QuadrotorVectorEnv(4, Hover(), autoreset="same_step", max_episode_steps=10, **options)
    model = sb3.PPO(
        "MultiInputPolicy", StableBaselinesEnv(worlds), n_steps=16, batch_size=32, n_epochs=1
    )
    before = weights(model.policy)
    model.learn(2 * 16 * 4)
    assert changed(before, weights(model.policy))


def test_skrl_learns() -> None:
    needed("skrl")
    import torch
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer

    class Policy(GaussianMixin, Model):
        def __init__(self, **spaces: Any) -> None:
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, self.num_actions)
            self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs: Any, role: str) -> Any:
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self, **spaces: Any) -> None:
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, 1)

        def compute(self, inputs: Any, role: str) -> Any:
            return self.net(inputs["observations"]), {}

    env = wrap_env(gymnasium.make_vec(NAME, num_envs=8, **SMALL), wrapper="gymnasium")
    spaces: dict[str, Any] = {
        "observation_space": env.observation_space,
        "action_space": env.action_space,
        "device": "cpu",
    }
    policy, value = Policy(**spaces), Value(**spaces)
    cfg = PPO_CFG(rollouts=16, learning_epochs=1, mini_batches=2)
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    agent = PPO(
        models={"policy": policy, "value": value},
        memory=RandomMemory(memory_size=16, num_envs=8, device="cpu"),
        cfg=cfg,
        **spaces,
    )
    before = weights(policy)
    options = {"timesteps": 33, "headless": True, "disable_progressbar": True}
    SequentialTrainer(cfg=options, env=env, agents=agent).train()
    assert changed(before, weights(policy))


def test_torchrl_collects() -> None:
    needed("torchrl")
    import torch
    from torchrl.collectors import Collector
    from torchrl.envs import GymWrapper
    from torchrl.envs.utils import check_env_specs

    env = GymWrapper(gymnasium.make(NAME, max_episode_steps=20, **SMALL), device="cpu")
    check_env_specs(env)
    batches = list(Collector(env, frames_per_batch=30, total_frames=60))
    assert [len(batch) for batch in batches] == [30, 30]
    assert torch.isfinite(batches[1]["next", "reward"]).all()
    assert sum(int(batch["next", "done"].sum()) for batch in batches) >= 2


def test_rsl_rl_learns_without_copies(tmp_path: Path) -> None:
    needed("rsl_rl")
    import torch
    from rsl_rl.runners import OnPolicyRunner

    from crazyflow_ros.compat.rsl_rl import RslRlEnv

    env = RslRlEnv(
        Environment(32, SeenHover(), autoreset="same_step", max_episode_steps=20, **SMALL)
    )
    seen = env.get_observations()
    assert {name: tuple(x.shape) for name, x in seen.items()} == {
        "policy": (32, 13), "privileged": (32, 1),
    }  # fmt: skip
    ours, _ = env.environment.reset(jax.random.key(0))
    shared = torch.from_dlpack(ours.states.pos)
    assert shared.data_ptr() == ours.states.pos.unsafe_buffer_pointer()
    assert (seen["privileged"] > 0.5).all()
    for i in range(1, 21):
        _, reward, dones, extras = env.step(torch.zeros(32, 4))
        assert torch.isfinite(reward).all() and set(extras["log"]) >= {"near"}
        assert dones.all() == dones.any() == (i == 20) == bool(extras["time_outs"].all())
        assert (env.episode_length_buf == i % 20).all()
    actor = {
        "class_name": "MLPModel",
        "hidden_dims": [16],
        "distribution_cfg": {"class_name": "GaussianDistribution"},
    }
    config = {
        "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 2},
        "actor": actor,
        "critic": {"class_name": "MLPModel", "hidden_dims": [16]},
        "obs_groups": {"actor": ["policy"], "critic": ["policy", "privileged"]},
        "num_steps_per_env": 8,
        "save_interval": 100,
    }
    runner = OnPolicyRunner(env, config, str(tmp_path))
    before = weights(runner.alg.actor)
    runner.learn(3, init_at_random_ep_len=True)
    assert changed(before, weights(runner.alg.actor))
    with pytest.raises(ValueError, match="autoreset=next_step"):
        RslRlEnv(Environment(2, Hover(), **SMALL))


def test_brax_learns_to_hover(monkeypatch: pytest.MonkeyPatch) -> None:
    needed("brax")
    if not hasattr(jax, "device_put_replicated"):  # Brax 0.14.2 calls it; JAX 0.10 is without

        def replicated(tree: Any, devices: Any) -> Any:
            return jax.tree.map(lambda x: jnp.stack([x] * len(devices)), tree)

        monkeypatch.setattr(jax, "device_put_replicated", replicated, raising=False)
    from brax.training.agents.ppo import train as ppo

    from crazyflow_ros.compat.brax import BraxEnv

    returns = list[float]()
    ppo.train(
        environment=BraxEnv(Hover(), **SMALL),
        num_timesteps=200_000,
        episode_length=100,
        num_envs=128,
        batch_size=64,
        unroll_length=10,
        num_minibatches=8,
        num_updates_per_batch=4,
        learning_rate=1e-3,
        discounting=0.97,
        normalize_observations=True,
        num_evals=3,
        num_eval_envs=32,
        progress_fn=lambda _, metrics: returns.append(float(metrics["eval/episode_reward"])),
    )
    assert np.isfinite(returns).all() and returns[-1] > returns[0] + 5


def test_rejax_learns() -> None:
    rejax = needed("rejax")
    from crazyflow_ros.compat.gymnax import GymnaxEnv

    env = GymnaxEnv(Hover(), max_episode_steps=50, **SMALL)
    obs, state = env.reset(jax.random.key(1))
    for i in range(50):
        obs, state, _, done, _ = env.step(jax.random.key(i), state, jnp.zeros(4))
        assert bool(done) == (i == 49)
    assert obs.shape == (13,) and int(state.core.steps[0, 0]) == 0
    algorithm = rejax.PPO.create(
        env=env,
        env_params=env.default_params,
        num_envs=64,
        num_steps=16,
        num_minibatches=4,
        num_epochs=2,
    )
    first = state = algorithm.init_state(jax.random.key(0))
    learn = jax.jit(algorithm.train_iteration)
    for _ in range(2):
        state = learn(state)
    before, after = (
        np.concatenate([np.ravel(x) for x in jax.tree.leaves(ts.actor_ts.params)])
        for ts in (first, state)
    )
    assert changed(before, after) and int(state.global_step) == 2 * 64 * 16
    with pytest.raises(ValueError, match="no eye"):
        GymnaxEnv(Hover(), eye=Eye("depth"), **SMALL)


def test_cleanrl_s_script_learns(tmp_path: Path) -> None:
    """CleanRL's programs are single files, which its users copy."""
    script = os.environ.get("CLEANRL_PPO")
    if script is None:
        pytest.skip("CLEANRL_PPO must name CleanRL's ppo_continuous_action.py")
    import subprocess

    options = ["--num-envs=2", "--num-steps=64", "--num-minibatches=2", "--total-timesteps=384"]
    clip = "lambda obs: np.clip(obs, -10, 10)"  # Gymnasium 1 asks for the space, too
    text = Path(script).read_text().replace(clip, f"{clip}, env.observation_space")
    (tmp_path / "ppo.py").write_text(text)
    command = [sys.executable, "ppo.py", f"--env-id=crazyflow_ros.envs:{NAME}", "--no-cuda"]
    done = subprocess.run(
        [*command, *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert "SPS:" in done.stdout and "nan" not in done.stdout


def test_gymnasium_s_processes_step_worlds() -> None:
    spawn = {"context": "spawn"}
    envs = gymnasium.make_vec(
        NAME, num_envs=2, vectorization_mode="async", vector_kwargs=spawn, **SMALL
    )
    alone = gymnasium.make(NAME, **SMALL)
    try:
        obs, _ = envs.reset(seed=5)
        expected, _ = alone.reset(seed=6)
        np.testing.assert_array_equal(obs[1], expected)
        for _ in range(3):
            obs, *_ = envs.step(np.zeros((2, 4), np.float32))
            expected, *_ = alone.step(np.zeros(4, np.float32))
        np.testing.assert_allclose(obs[1], expected, atol=1e-6)
    finally:
        envs.close()


def test_gymnasium_records_videos(tmp_path: Path) -> None:
    needed("moviepy")
    env = gymnasium.make(NAME, render_mode="rgb_array", max_episode_steps=5, **SMALL)
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path), disable_logger=True)
    env.reset(seed=0)
    for _ in range(5):
        env.step(env.action_space.sample())
    env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 1000


def test_people_see_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    env = gymnasium.make(NAME, render_mode="human", **SMALL)
    monkeypatch.setattr(env.unwrapped.sim, "render", shown.append)  # a window needs a display
    env.reset(seed=0)
    env.step(np.zeros(4, np.float32))
    assert env.render() is None and shown == ["human"] * 2
    with pytest.raises(ValueError, match="render_mode must be None or of"):
        QuadrotorEnv(Hover(), render_mode="depth", **SMALL)


def test_minari_keeps_flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = needed("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make(NAME, max_episode_steps=10, **SMALL))
    flown = []
    for episode in range(2):
        flown.append([env.reset(seed=episode)[0]])
        ended = False
        while not ended:
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            flown[-1].append(obs)
            ended = terminated or truncated
    env.create_dataset(dataset_id="crazyflow/hover-v0")
    env.close()
    kept = minari.load_dataset("crazyflow/hover-v0")
    assert kept.total_episodes == 2 and kept.total_steps == sum(len(x) - 1 for x in flown)
    for episode, seen in zip(kept.iterate_episodes(), flown):
        np.testing.assert_array_equal(episode.observations, seen)
    again = kept.recover_environment()
    np.testing.assert_array_equal(again.reset(seed=0)[0], flown[0][0])
