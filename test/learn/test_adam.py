"""The optimiser, compared with the formulas of its papers in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from crazyflow_ros.learn.adam import Adam


@pytest.mark.parametrize("length", [0.3, 30.0])  # of the gradients, below and above `clip`
def test_steps_are_those_of_the_papers(length: float) -> None:
    rng, n = np.random.default_rng(0), 6
    adam = Adam(rate=0.02, final=0.1, steps=n, clip=1.0, mean_decay=0.8, square_decay=0.95)
    weights = np.zeros(5, np.float32)
    state, mean, square = adam.begin(weights), np.zeros(5), np.zeros(5)
    for t in range(n + 2):  # the rate stays what it is after the last step
        gradient = rng.normal(size=5)
        gradient *= length / np.linalg.norm(gradient)
        change, state = adam.step(gradient.astype(np.float32), state)
        clipped = gradient * min(1, 1.0 / length)
        mean, square = 0.8 * mean + 0.2 * clipped, 0.95 * square + 0.05 * clipped**2
        unbiased = mean / (1 - 0.8 ** (t + 1)), square / (1 - 0.95 ** (t + 1))
        fall = (1 + np.cos(np.pi * min(t / n, 1))) / 2
        expected = -0.02 * (0.1 + 0.9 * fall) * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
        np.testing.assert_allclose(change, expected, rtol=2e-5, atol=1e-8)
