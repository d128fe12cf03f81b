"""Advantages, densities and the clipped objective, compared with loops and by hand."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.stats import norm

from crazyflow_ros.envs import (
    Environment,
    Flight,
    ObservationTerm,
    RewardTerm,
    Start,
    TerminationTerm,
    Terms,
    TermTask,
)
from crazyflow_ros.learn.ppo import (
    Experience,
    Ppo,
    PpoSettings,
    advantages,
    clipped_objective,
    log_probability,
)
from crazyflow_ros.learn.quick import QuickHover
from crazyflow_ros.learn.ready import APPROACHING


def test_advantages_are_the_sum_of_discounted_errors() -> None:
    rng = np.random.default_rng(0)
    horizon, n, discount, trace = 12, 5, 0.9, 0.8
    reward, value = rng.normal(size=(2, horizon, n))
    last, ends = rng.normal(size=n), rng.random((2, horizon, n)) < 0.2
    ended, late = ends[0], ends[1] & ~ends[0]
    assert ended.any() and late.any()
    expected = np.zeros((horizon, n))
    for i in range(n):
        for t in range(horizon):
            weight = 1.0
            for k in range(t, horizon):
                following = value[k + 1, i] if k + 1 < horizon else last[i]
                error = reward[k, i] - value[k, i]
                expected[t, i] += weight * (error + (0 if ended[k, i] else discount * following))
                if ended[k, i] or late[k, i]:
                    break
                weight *= discount * trace
    found = advantages(reward, value, last, ended, late, discount, trace)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_objective_rewards_no_change_beyond_the_clip() -> None:
    ratio = np.array([1.1, 1.5, 0.5, 1.5, 0.5])
    advantage = np.array([2.0, 2.0, 2.0, -2.0, -2.0])
    # By hand: 1.1 * 2; at most 1.2 * 2; 0.5 * 2; then the worse of -3 and -2.4, and of -1 and -1.6.
    expected = [2.2, 2.4, 1.0, -3.0, -1.6]
    np.testing.assert_allclose(clipped_objective(ratio, advantage, 0.2), expected, rtol=1e-6)
    slope = jax.vmap(jax.grad(clipped_objective), (0, 0, None))(ratio, advantage, 0.2)
    np.testing.assert_allclose(slope, [2.0, 0.0, 2.0, -2.0, 0.0], rtol=1e-6)


def test_probabilities_are_those_of_a_normal_distribution() -> None:
    rng = np.random.default_rng(1)
    mean, later, action = rng.normal(size=(3, 6, 4))
    deviation = 0.7
    before, after = (norm.logpdf(action, x, deviation).sum(axis=-1) for x in (mean, later))
    found = log_probability(later, deviation, action) - log_probability(mean, deviation, action)
    np.testing.assert_allclose(found, after - before, rtol=1e-5)


def test_the_deviation_falls_by_the_same_factor_in_each_update() -> None:
    settings = PpoSettings(updates=40, deviation=0.8, final_deviation=0.05)
    found = Ppo(QuickHover(4, APPROACHING), settings).deviation(np.arange(41))
    np.testing.assert_allclose(found, np.geomspace(0.8, 0.05, 41), rtol=1e-5)


@dataclass(frozen=True)
class Plunge(TermTask):
    """A task whose rewards are negative, and whose end costs most."""

    seconds: float = 4.0

    def begin(self, key: Array, n: int) -> Start:
        """All at the same point."""
        del key
        return Start(jnp.tile(jnp.array([0.0, 0, 3]), (n, 1)), jnp.zeros((n, 3)))

    @property
    def terms(self) -> Terms:
        def low(now: Flight) -> Array:
            return now.pos[:, 2] < 2.5

        alive = RewardTerm(lambda now: jnp.ones(len(now.pos)), -3.0)
        return Terms(
            rewards={"alive": alive, "crash": RewardTerm(low, -97.0)},
            terminations={"low": TerminationTerm(low)},
            privileged={"height": ObservationTerm(lambda now: now.pos[:, 2:])},
        )


@pytest.mark.parametrize("fastest", [None, 40.0])
def test_the_task_alone_decides_on_rewards_and_ends(fastest: float | None) -> None:
    """A drone that spins up in its fall has no way out; as an option, it is cut off."""
    env = Environment(2, Plunge(), drone="cf2x_L250", freq=100, action="rotor_vel")
    settings = PpoSettings(minibatches=2, fastest=fastest, discount=0.9)
    ppo = Ppo(env, settings)
    spin = np.full((30, 2, 4), 50.0, np.float32) * np.float32([1, 1, -1, -1])
    fly = jax.jit(lambda s: ppo._fly(ppo.weights_of(ppo._weights), 1.0, s, spin)[1])
    samples = fly(ppo.begin().worlds)
    x = jax.tree.map(lambda x: np.asarray(x)[1:, 0], samples)  # the first step begins the episode
    assert x.told.shape == (29, 1) and abs(x.told[0] - 3) < 0.01
    end = int(np.argmax(x.ended | x.late))
    np.testing.assert_allclose(x.reward[:end], 0.1 * -3, rtol=1e-6)
    np.testing.assert_allclose(x.reward, 0.1 * x.terms[:, :2].sum(-1), rtol=1e-6)
    if fastest is None:
        assert x.ended[end] and not x.late.any() and end > 14
        np.testing.assert_allclose(x.reward[end], 0.1 * -100, rtol=1e-6)
    else:
        assert x.late[end] and not x.ended[: end + 1].any() and end < 14


def test_the_loss_is_the_sum_of_its_parts_written_as_a_loop() -> None:
    settings = PpoSettings(hidden=4, clip=0.1, value_weight=0.7, bound_weight=0.3)
    ppo, rng = Ppo(QuickHover(4, APPROACHING), settings), np.random.default_rng(2)
    vector = rng.normal(size=ppo.begin().weights.shape).astype(np.float32)
    weights = ppo.weights_of(vector)
    observation = rng.normal(size=(5, 2, ppo.worlds.observation.size)).astype(np.float32)
    mean = np.asarray(weights.actor.apply(observation), float)
    value = np.asarray(weights.critic.apply(observation), float)[..., 0]
    deviation = 0.4
    action = mean + rng.normal(size=mean.shape) * deviation
    # Those of a policy that was a little different: some ratios are beyond the clip.
    old = norm.logpdf(action, mean + 0.05 * rng.normal(size=mean.shape), deviation).sum(axis=-1)
    constant = 4 * norm.logpdf(0, 0, deviation)
    advantage, target = rng.normal(size=(2, 5, 2))
    losses, ratios = [], []
    for i in np.ndindex(5, 2):
        ratio = np.exp(norm.logpdf(action[i], mean[i], deviation).sum() - old[i])
        gain = min(ratio * advantage[i], min(max(ratio, 0.9), 1.1) * advantage[i])
        outside = sum((abs(x) - 1) ** 2 for x in mean[i] if abs(x) > 1)
        losses.append(0.7 * (value[i] - target[i]) ** 2 + 0.3 * outside - gain)
        ratios.append(ratio)
    assert min(ratios) < 0.9 and max(ratios) > 1.1 and abs(mean).max() > 1 > abs(mean).min()
    zeros, acted = np.zeros((5, 2)), np.ones((5, 2), bool)
    acted[2, 0] = False  # a step that began an episode
    told = np.zeros((5, 2, 0), np.float32)
    samples = Experience(observation, action, old - constant, *[zeros] * 5, acted, told, told)
    found = ppo.loss(vector, deviation, samples, advantage, target)
    np.testing.assert_allclose(found, np.mean(np.reshape(losses, (5, 2))[acted]), rtol=1e-4)
