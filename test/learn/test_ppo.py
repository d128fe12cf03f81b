"""Advantages, densities and the clipped objective, compared with loops and by hand."""

from __future__ import annotations

import jax
import numpy as np
from scipy.stats import norm

from crazyflow_ros.learn.ppo import advantages, clipped_objective, log_probability


def test_advantages_are_the_sum_of_discounted_errors() -> None:
    rng = np.random.default_rng(0)
    horizon, n, discount, trace = 12, 5, 0.9, 0.8
    reward, value = rng.normal(size=(2, horizon, n))
    last, ends = rng.normal(size=n), rng.random((horizon, n)) < 0.2
    assert ends.any()
    expected = np.zeros((horizon, n))
    for i in range(n):
        for t in range(horizon):
            weight = 1.0
            for k in range(t, horizon):
                following = value[k + 1, i] if k + 1 < horizon else last[i]
                error = reward[k, i] - value[k, i]
                expected[t, i] += weight * (error + (0 if ends[k, i] else discount * following))
                if ends[k, i]:
                    break
                weight *= discount * trace
    found = advantages(reward, value, last, ends, discount, trace)
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
    mean, action = rng.normal(size=(2, 6, 4))
    log_deviation = rng.normal(size=4)
    expected = norm.logpdf(action, mean, np.exp(log_deviation)).sum(axis=-1)
    constant = 4 * 0.5 * np.log(2 * np.pi)
    found = log_probability(mean, log_deviation, action)
    np.testing.assert_allclose(found, expected + constant, rtol=1e-5)
