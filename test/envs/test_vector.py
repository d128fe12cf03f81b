"""The vector environment: Gymnasium's interface, seeds, tasks that a plain controller solves."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from crazyflow_ros.envs import FigureEight, Landing, QuadrotorVectorEnv, Reach
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.randomize import randomize_mass

N = 6
GRAVITY = 9.81


@pytest.fixture(scope="module", params=[Reach, FigureEight, Landing])
def env(request: pytest.FixtureRequest) -> QuadrotorVectorEnv:
    return QuadrotorVectorEnv(N, request.param(), drone="cf21B_500", dynamics="so_rpy", freq=100)


def controller(obs: np.ndarray) -> np.ndarray:
    """Tilt and thrust that accelerate the drone as a damped spring would."""
    pull = 4 * np.clip(obs[:, :3], -0.3, 0.3) + 3.5 * obs[:, 3:6]
    tilt = np.stack([-pull[:, 1], pull[:, 0]], axis=-1) / GRAVITY / 0.5
    zero = np.zeros((len(obs), 1))
    return np.concatenate([tilt, zero, pull[:, 2:] / GRAVITY / 0.6], axis=-1).clip(-1, 1)


def test_spaces_seeds_and_bad_actions(env: QuadrotorVectorEnv) -> None:
    def run(seed: int | None) -> list[Any]:
        env.action_space.seed(0)
        return [env.reset(seed=seed), *(env.step(env.action_space.sample()) for _ in range(20))]

    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert env.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    first, again, other, next_one = run(5), run(5), run(6), run(None)
    assert data_equivalence(first, again, exact=True)
    assert not data_equivalence(first[0], other[0])
    assert not data_equivalence(other[0], next_one[0])
    obs, info = first[0]
    assert obs in env.observation_space and info == {}
    assert len(np.unique(obs[:, 0])) == N  # worlds differ
    obs, reward, terminated, truncated, info = first[1]
    assert obs in env.observation_space and obs[0] in env.single_observation_space
    for array, dtype in ((reward, np.floating), (terminated, np.bool_), (truncated, np.bool_)):
        assert array.shape == (N,) and np.issubdtype(array.dtype, dtype)
    assert info["is_success"].shape == info["_is_success"].shape == (N,)

    before = np.array(env.sim.data.states.pos)
    bad = np.zeros((N, 4))
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"nan at index \(2, 1\)"):
        env.step(bad)
    with pytest.raises(ValueError, match=r"shape \(6, 4\), got \(4,\)"):
        env.step(np.zeros(4))
    np.testing.assert_array_equal(env.sim.data.states.pos, before)


def test_worlds_that_ended_start_anew_in_the_next_step(env: QuadrotorVectorEnv) -> None:
    obs, _ = env.reset(seed=2)
    for _ in range(100):
        action = controller(obs)
        action[0] = [0, 0, 0, -1]  # falls
        obs, reward, terminated, truncated, info = env.step(action)
        if terminated[0]:
            break
    assert reward[0] < 0 and not info["is_success"][0] and not truncated.any()
    before, flying = obs, ~terminated
    obs, reward, terminated, truncated, info = env.step(controller(obs))
    assert reward[0] == 0 and not terminated[0] and not truncated.any()
    assert info["_is_success"].tolist() == flying.tolist()
    np.testing.assert_array_equal(obs[0, 6:], [0, 0, 0, 1, 0, 0, 0])  # level, at rest
    assert (obs[0, :3] != before[0, :3]).all()
    assert env.sim.data.core.steps[0, 0] == 0


@pytest.mark.soak
def test_stages_added_to_the_pipelines_act_from_the_next_reset_or_step_on() -> None:
    env = QuadrotorVectorEnv(N, Reach(), drone="cf21B_500", dynamics="so_rpy", freq=100)

    def tow(data: SimData) -> SimData:
        """Pulls to the east with the weight of the drone."""
        force = jnp.zeros_like(data.states.force).at[..., 0].set(GRAVITY * data.params.mass[..., 0])
        return data.replace(states=data.states.replace(force=force))

    env.reset(seed=0)
    env.step(np.zeros((N, 4)))
    assert (abs(np.array(env.sim.data.states.vel[:, 0, 0])) < 0.1).all()
    env.sim.reset_pipeline += (randomize_mass(0.3),)
    env.reset()
    assert len(np.unique(env.sim.data.params.mass)) == N
    env.sim.step_pipeline = insert_before(env.sim.step_pipeline, "integrate", tow)
    for _ in range(10):
        env.step(np.zeros((N, 4)))
    assert (np.array(env.sim.data.states.vel[:, 0, 0]) > 1).all()


def test_a_mask_resets_its_worlds_alone() -> None:
    """These begin as after a reset of all with the seed; the others fly on to the bit."""
    env = QuadrotorVectorEnv(
        5, FigureEight(), n_drones=2, drone="cf21B_500", dynamics="so_rpy", freq=100,
        autoreset="disabled", randomizers=(randomize_mass(0.3),),
    )  # fmt: skip
    mask = np.array([False, True, False, False, True])
    for early in (lambda: env.step(0), lambda: env.reset(options={"reset_mask": mask})):
        with pytest.raises(gymnasium.error.ResetNeeded):
            early()
    actions = np.linspace(-0.3, 0.3, 40).reshape(env.action_space.shape)

    def flown() -> dict[str, np.ndarray]:
        obs, *_ = env.step(actions)
        data = env.sim.data
        states = {name: np.array(array) for name, array in vars(data.states).items()}
        masses = np.broadcast_to(np.array(data.params.mass), (5, 2, 1))
        rate, ticks = np.array(data.states_deriv.acc), np.array(data.core.steps)
        return states | {"obs": np.array(obs), "mass": masses, "acc": rate, "steps": ticks}

    begun, _ = env.reset(seed=8)
    anew = flown()
    env.reset(seed=3)
    for _ in range(4):
        last, *_ = env.step(actions)
    last, before = np.array(last), env.sim.data
    onwards = flown()
    env.sim.data = before
    options = {"reset_mask": mask}
    seen, info = env.reset(seed=8, options=options)
    assert info == {} and list(options) == ["reset_mask"]
    np.testing.assert_array_equal(seen, np.where(mask[:, None, None], begun, last))
    np.testing.assert_array_equal(env.sim.data.core.steps[:, 0], np.where(mask, 0, 8))
    for name, array in flown().items():
        np.testing.assert_array_equal(array[mask], anew[name][mask], err_msg=name)
        np.testing.assert_array_equal(array[~mask], onwards[name][~mask], err_msg=name)

    now = np.array(env.sim.data.states.pos)
    for wrong in (mask[:4], mask.astype(int), mask & False):
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options={"reset_mask": wrong})
    with pytest.raises(ValueError, match="'mask'"):
        env.reset(options={"mask": mask})
    np.testing.assert_array_equal(env.sim.data.states.pos, now)


def test_worlds_of_a_mask_do_not_begin_once_more(env: QuadrotorVectorEnv) -> None:
    """In the step after the one in which their episodes have ended."""
    env.reset(seed=2)
    ended = np.zeros(N, bool)
    while not ended.any():
        _, _, ended, _, _ = env.step(np.tile([0.0, 0, 0, -1], (N, 1)))
    ended = np.array(ended)
    worlds = np.flatnonzero(ended)[:1]
    env.reset(options={"reset_mask": np.isin(np.arange(N), worlds)})
    *_, info = env.step(np.zeros((N, 4)))
    assert info["_is_success"][worlds].all()
    assert (info["_is_success"] == ~ended)[np.delete(np.arange(N), worlds)].all()
    ticks = np.array(env.sim.data.core.steps[:, 0])
    assert (ticks[worlds] == 2).all()
    assert (ticks[np.setdiff1d(np.flatnonzero(ended), worlds)] == 0).all()


def test_a_plain_controller_solves_the_task(env: QuadrotorVectorEnv) -> None:
    recorded = RecordEpisodeStatistics(env)
    obs, _ = recorded.reset(seed=3)
    solved, ended = np.zeros(N, bool), np.zeros(N, bool)
    for _ in range(round(env.task.seconds * 50)):
        obs, _, terminated, truncated, info = recorded.step(controller(obs))
        now = (terminated | truncated) & ~ended
        solved[now] = info["is_success"][now]
        ended |= now
    assert ended.all() and solved.all()
    assert recorded.episode_count >= N
    assert min(recorded.return_queue) > 0


def test_tasks_are_registered() -> None:
    for given in ({"task": Reach(tolerance=0.3)}, {"tolerance": 0.3, "max_tilt": 0.4}):
        env = gymnasium.make_vec("crazyflow_ros/Reach-v0", num_envs=3, **given)
        assert env.num_envs == 3 and env.unwrapped.task == Reach(tolerance=0.3)
        env.close()
    for options in ({"task": Landing()}, {"task": Reach(), "tolerance": 0.3}):
        with pytest.raises(ValueError, match=r"task must be a Reach"):
            gymnasium.make_vec("crazyflow_ros/Reach-v0", num_envs=2, **options)
