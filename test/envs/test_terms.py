"""Tasks of terms: what a term sees, and what becomes of it, compared with loops of NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from policies import motions, policy_of_layers
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.envs import (
    CurriculumTerm,
    Environment,
    EventTerm,
    Flight,
    Hover,
    ObservationTerm,
    QuadrotorVectorEnv,
    RewardTerm,
    Start,
    TerminationTerm,
    Terms,
    TermTask,
    action_rate,
    effort,
    gust,
    lose_rotor,
    nearest,
    neighbours,
    on_floor,
    spin,
    tilt,
)
from crazyflow_ros.policy import Action, Observation, follow_policy, load, save
from crazyflow_ros.policy.flight import PolicyFile
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.leaves import traced
from crazyflow_ros.sim.randomize import ResetStage, randomize_mass, randomize_vel
from crazyflow_ros.xla.kernels import fits_one_kernel

N, M, STEPS = 3, 3, 30


@dataclass(frozen=True)
class Everything(TermTask):
    """Three drones beside each other, with a term of each kind."""

    seconds: float = 0.5

    def begin(self, key: Array, n: int, level: dict[str, Array]) -> Start:
        """Higher in each level."""
        aside = jax.random.uniform(key, (n, 1)) + 2 * jnp.arange(n)[:, None]
        pos = jnp.pad(aside, ((0, 0), (0, 2))) + jnp.array([0.0, 0.0, 1.0]) * (1 + level["height"])
        return Start(pos, pos)

    @property
    def terms(self) -> Terms:
        def masses(now: Flight) -> Array:
            return jnp.concatenate([now.parameter("mass"), now.time], axis=-1)

        late = TerminationTerm(lambda now: now.time[:, 0] > 0.295, time_out=True)
        return Terms(
            rewards={
                "tilt": RewardTerm(tilt, -0.5),
                "spin": RewardTerm(spin, -0.1),
                "effort": RewardTerm(effort, -0.2),
                "rate": RewardTerm(action_rate, -0.3),
                "near": RewardTerm(nearest),
                "fall": RewardTerm(lambda now: now.pos[:, 2] - now.before.pos[:, 2]),
            },
            terminations={"floor": TerminationTerm(on_floor), "late": late},
            success=lambda now: now.pos[:, 0] > -50,
            observations={
                "others": ObservationTerm(neighbours, scale=2.0),
                "height": ObservationTerm(lambda now: now.pos[:, 2:], delay=2, history=3),
                "noisy": ObservationTerm(lambda now: 0 * now.vel, noise=0.1),
            },
            privileged={"masses": ObservationTerm(masses)},
            events={
                "masses": EventTerm(randomize_mass(0.3)),
                "push": EventTerm(randomize_vel(3.0), seconds=(0.05, 0.1)),
                "gust": EventTerm(gust(5.0), seconds=(0.1, 0.2)),
                "loss": EventTerm(lose_rotor(), seconds=(0.15, 0.2)),
            },
            curricula={"height": CurriculumTerm(lambda level, share: level + share)},
        )


OPTIONS: dict[str, Any] = {
    "freq": 100, "action": "rotor_vel", "n_drones": M, "observation": ("position",)
}  # fmt: skip


@pytest.fixture(scope="module")
def flown() -> list[tuple[np.ndarray, Any, Any]]:
    """Actions, states and results of steps; the first has none."""
    env, rng = Environment(N, Everything(), **OPTIONS), np.random.default_rng(0)
    state, seen = env.reset(jax.random.key(1))
    result: list[Any] = [(np.zeros((N, M, 4)), state, None)]
    assert seen.shape == (N, M, 3 + 12 + 3 + 3) and env.observation.told[12] == "height[0]"
    for _ in range(STEPS):
        action = rng.uniform(-0.5, 0.5, (N, M, 4)).astype(np.float32)
        state, step = env.step(state, action)
        result.append((action, state, step))
    return result


def test_rewards_are_sums_of_their_terms(flown: Any) -> None:
    last = flown[0][0]
    for (_, before, _), (action, state, step) in pairwise(flown[:15]):
        quat = np.array(state.states.quat)
        up = Rotation.from_quat(quat.reshape(-1, 4)).as_matrix()[:, 2, 2].reshape(N, M)
        pos = np.array(state.states.pos)
        apart = np.linalg.norm(pos[:, :, None] - pos[:, None], axis=-1) + 1e9 * np.eye(M)
        expected = {
            "tilt": -0.5 * (1 - up),
            "effort": -0.2 * (action**2).sum(-1),
            "rate": -0.3 * ((action - last) ** 2).sum(-1),
            "near": apart.min(-1),
            "fall": (pos - np.array(before.states.pos))[..., 2],
        }
        last = action
        for name, value in expected.items():
            np.testing.assert_allclose(step.terms[name], value, rtol=2e-4, atol=2e-6)
        rewards = [step.terms[x] for x in (*expected, "spin")]
        np.testing.assert_allclose(step.reward, sum(rewards), rtol=1e-5, atol=1e-5)
        assert not step.terms["floor"].any()


def test_policies_are_told_terms_with_delay_history_and_noise(flown: Any) -> None:
    heights = [np.array(flown[0][1].states.pos)[..., 2]] * 5
    noise = []
    for _, state, step in flown[1:15]:
        told, pos, vel = (np.array(x) for x in
                          (step.observation, state.states.pos, state.states.vel))  # fmt: skip
        for i in range(M):
            others = [(i + 1) % M, (i + 2) % M]
            rows = [np.hstack([pos[:, j] - pos[:, i], vel[:, j] - vel[:, i]]) for j in others]
            np.testing.assert_allclose(told[:, i, 3:15], 2 * np.hstack(rows), rtol=1e-5, atol=1e-6)
        heights.append(pos[..., 2])
        np.testing.assert_array_equal(told[..., 15:18], np.stack(heights[-3:-6:-1], axis=-1))
        noise.append(told[..., 18:])
        time = np.array(state.core.steps)[:, :, None] / 100
        mass = np.broadcast_to(np.array(state.params.mass), (N, M, 1))
        found = np.concatenate([mass, np.broadcast_to(time, (N, M, 1))], axis=-1)
        np.testing.assert_allclose(step.privileged, found, rtol=1e-6)
    assert 0.085 < np.std(noise) < 0.115 and np.ptp(mass) > 0


def test_events_happen_at_random_times_until_the_episode_ends(flown: Any) -> None:
    wind = np.array([state.params.wind[:, 0] for _, state, _ in flown])
    thrust = np.array([state.params.rpm2thrust[..., 2] for _, state, _ in flown])
    assert thrust.shape[1:] == (N, M, 4)
    first = {"wind": (wind != 0).any(-1), "thrust": (thrust == 0).any(axis=(-1, -2))}
    when = {name: flags[:15].argmax(axis=0) for name, flags in first.items()}
    assert (when["wind"] >= 5).all() and (when["wind"] <= 10).all()  # 0.1 to 0.2 s
    assert (when["thrust"] >= 8).all() and (when["thrust"] <= 10).all()
    assert ((thrust[11] == 0).sum(-1) == 1).all() and (np.linalg.norm(wind, axis=-1) <= 5).all()
    ends = [i for i, (*_, step) in enumerate(flown) if i and step.truncated.all()]
    assert ends == [15, 31][: len(ends)] and len(ends) == 1  # later than 0.295 s
    assert (thrust[16] > 0).all() and (wind[16] == 0).all()
    vel = np.array([state.states.vel for _, state, _ in flown])
    pushed = (abs(np.diff(vel, axis=0))[..., :2] > 1).any(axis=(-1, -2))[:15]
    assert (pushed.argmax(axis=0) >= 2).all() and pushed.any(axis=0).all()


def test_levels_rise_with_successes(flown: Any) -> None:
    heights = [np.array(flown[i][1].states.pos)[..., 2] for i in (0, 16)]
    np.testing.assert_allclose(heights[0], 1)
    np.testing.assert_allclose(heights[1], 2)


def test_a_step_with_all_terms_is_a_single_kernel() -> None:
    env = Environment(2, Everything(), **OPTIONS)
    program = env.compiled.program
    data = env.compiled.beginning.default
    step = traced(lambda data: program.last(data, program.tick(data)), data)
    assert fits_one_kernel(step)


@pytest.mark.parametrize("ending", ["together", "alone"])
def test_drones_end_together_or_alone(ending: str) -> None:
    task = Hover(spread=(0.0, 0.0, 0.0), limit=0.5)
    worlds = QuadrotorVectorEnv(
        1, task, n_drones=2, ending=ending, freq=100, dynamics="so_rpy", drone="cf21B_500",
        max_episode_steps=60, autoreset="disabled",
    )  # fmt: skip
    worlds.reset(seed=0)
    falls = np.zeros((1, 2, 4), np.float32)
    falls[0, 0, 3] = -1
    steps = []
    for _ in range(60):
        _, _, terminated, truncated, info = worlds.step(falls)
        over = None if worlds.over is None else worlds.over[0].tolist()
        steps.append((bool(terminated[0]), worlds.rewards_of_drones[0].copy(), over))
        assert set(info["terms"]) == {"near", "loss", "lost"}
    ends = [i for i, (terminated, *_) in enumerate(steps) if terminated]
    lost = next(i for i, (_, reward, _) in enumerate(steps) if reward[0] < 0)
    if ending == "together":
        assert ends[0] == lost
        return
    assert not ends and truncated[0] and [over for *_, over in steps[lost - 1 : lost + 1]] == [
        [0, 0], [1, 0],
    ]  # fmt: skip
    assert all(reward[0] == 0 < reward[1] for _, reward, _ in steps[lost + 1 :])


def test_a_policy_that_is_told_terms_flies_in_environments_only(tmp_path: Path) -> None:
    drone, told = "cf2x_L250", ("near[0]", "b")
    observation = replace(Observation.of(drone, ("position",)), told=told)
    own = policy_of_layers(["tanh"], observation, Action.of(drone, "rotor_vel"))
    save(own, tmp_path / "told.policy")
    policy = load(tmp_path / "told.policy")
    assert policy.observation.told == ("near[0]", "b") and policy.observation.size == 5
    with pytest.raises(ValueError, match="terms of a task"):
        follow_policy(Sim(control="state"), policy)
    with pytest.raises(ParameterError, match=r"near\[0\], b"):
        PolicyFile(str(tmp_path / "told.policy"), "cf2x_L250").check(
            500, "state", "first_principles", ""
        )
    motion = next(motions(1, 2))
    with pytest.raises(ValueError, match="tell"):
        policy.act(policy.initial_state((2,)), motion)
    seen = policy.observation(motion, told=jnp.ones((2, 2)))
    np.testing.assert_array_equal(seen[:, 3:], 1)


def test_terms_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="lost"):
        Terms(rewards={"lost": RewardTerm(tilt)}, terminations={"lost": TerminationTerm(on_floor)})
    with pytest.raises(ValueError, match="delay"):
        ObservationTerm(neighbours, delay=-1)
    with pytest.raises(ValueError, match="seconds"):
        EventTerm(gust(1.0), seconds=(2.0, 1.0))

    @dataclass(frozen=True)
    class Wrong(Hover):
        @property
        def terms(self) -> Terms:
            return replace(super().terms, rewards={"all": RewardTerm(lambda now: now.pos)})

    with pytest.raises(ValueError, match="all of the task must have shape"):
        Environment(2, Wrong(), **OPTIONS)


@pytest.mark.parametrize("stage", [gust(5.0), lose_rotor()])
def test_events_leave_worlds_outside_of_the_mask_alone(stage: ResetStage) -> None:
    sim = Sim(3, 2, control="rotor_vel")
    after = stage(sim.data, sim.default_data, jnp.array([True, False, True]))
    before, now = (
        np.concatenate(
            [
                np.broadcast_to(x.wind, (3, 2, 3)).reshape(3, -1),
                np.broadcast_to(x.rpm2thrust, (3, 2, 4, 3)).reshape(3, -1),
            ],
            axis=1,
        )
        for x in (sim.data.params, after.params)
    )
    assert list((before != now).any(axis=1)) == [True, False, True]
