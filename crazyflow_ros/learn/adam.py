"""Adam, with a limit on the gradient's norm and a learning rate that falls along a cosine.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", https://arxiv.org/abs/1412.6980, and
Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts",
https://arxiv.org/abs/1608.03983, without restarts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

_SMALL = 1e-8


class AdamState(NamedTuple):
    """What a step changes."""

    steps: Array
    """() int32, number of steps so far."""
    mean: Array
    """Running mean of the gradient."""
    square: Array
    """Running mean of its square."""


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Steps of the optimiser, for weights that are one vector.

    Attributes:
        rate: Learning rate of the first step.
        final: Learning rate after the last step, over that of the first one.
        steps: Number of steps.
        clip: Largest norm of a gradient; longer ones are shortened to it.
        mean_decay: Decay of the running mean of the gradient.
        square_decay: Decay of the running mean of its square.
    """

    rate: float
    final: float
    steps: int
    clip: float
    mean_decay: float = 0.9
    square_decay: float = 0.999

    def begin(self, weights: Any) -> AdamState:
        """Return the state before the first step."""
        zeros: Any = np.zeros_like(weights)
        return AdamState(np.int32(0), zeros, zeros)  # type: ignore[arg-type]

    def step(self, gradient: Array, state: AdamState) -> tuple[Array, AdamState]:
        """Return the change of the weights, and the state after the step."""
        norm = jnp.sqrt((gradient * gradient).sum())
        gradient = gradient * (self.clip / jnp.maximum(norm, self.clip))
        n, a, b = state.steps + 1, self.mean_decay, self.square_decay
        mean = a * state.mean + (1 - a) * gradient
        square = b * state.square + (1 - b) * gradient * gradient
        direction = mean / (1 - a**n) / (jnp.sqrt(square / (1 - b**n)) + _SMALL)
        done = jnp.minimum(state.steps, self.steps) / self.steps
        share = self.final + (1 - self.final) * (1 + jnp.cos(pi * done)) / 2
        return -self.rate * share * direction, AdamState(n, mean, square)
