"""Back-propagation through time: the gradient of the cost of a flight, through its physics.

All drones fly `horizon` actions from where the last update left them, and an update follows the
exact gradient of their mean cost. Short windows keep the gradient from exploding (Xu et al.,
"Accelerated Policy Learning with Parallel Differentiable Simulation", ICLR 2022,
https://arxiv.org/abs/2204.07137); their critics are not needed here, because the costs contain the
velocity at which to approach the goal. For quadrotors: Heeg et al., "Learning Quadrotor Control
From Visual Features Using Differentiable Simulation", https://arxiv.org/abs/2410.15979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.extras import extra
from crazyflow_ros.learn.batch import PICTURE, Batch, batch
from crazyflow_ros.learn.costs import Approach, Cost
from crazyflow_ros.learn.learner import (
    Learner,
    Settings,
    drones_of_shard,
    flat,
    means,
    new_network,
    together,
)
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.policy.network import Network

with extra("learn"):
    import optax


@dataclass(frozen=True, kw_only=True)
class BpttSettings(Settings):
    """Settings of `Bptt`."""

    clip: float | None = 1.0
    """Largest norm of a gradient; None for no limit."""
    clip_action: float | None = 20.0
    """Largest norm of the gradient of the summed cost of a flight with respect to one action; None
    for no limit."""


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def bounded(x: Array, most: float) -> Array:
    """Return the vectors (N, k) unchanged, but limit the norm of the gradient of each to `most`.

    The gradient of a drone that turns faster and faster grows without limit. Without a bound, the
    gradient of one such drone would mask those of all others.
    """
    del most
    return x


def _bounded_forward(x: Array, most: float) -> tuple[Array, None]:
    del most
    return x, None


def _bounded_backward(most: float, _: None, gradient: Array) -> tuple[Array]:
    norm = jnp.sqrt((gradient * gradient).sum(axis=-1, keepdims=True))
    bound = gradient * jnp.minimum(most / jnp.maximum(norm, 1e-30), 1)
    return (jnp.where(jnp.isfinite(norm), bound, 0),)


bounded.defvjp(_bounded_forward, _bounded_backward)


class BpttState(NamedTuple):
    """State of a training."""

    weights: Array
    optimizer: Any
    worlds: Any


class Bptt(Learner):
    """Trains a policy by back-propagation through time; see `Learner`."""

    def __init__(
        self,
        env: Environment | Batch,
        settings: BpttSettings = BpttSettings(),
        cost: Cost | None = Approach(),  # noqa: B008
    ) -> None:
        """Prepare a training.

        Args:
            env: The environment, or a batch of drones with its own costs.
            settings: Size and rates of the training.
            cost: Cost of a step in the environment; None for its negative reward, which must have a
                gradient.

        Raises:
            ValueError: The environment is not suitable for training, see `TrainingWorlds`.
        """
        self.settings, self.worlds = settings, batch(env, cost, settings.scales, settings.fastest)
        drones_of_shard(settings, self.worlds)
        sizes = (len(self.worlds.scale), settings.hidden, settings.hidden, SIZE)
        bias = np.arctanh(self.worlds.hover_action)
        eye = self.worlds.observation.eye
        first = new_network(settings.rng(0), sizes, "tanh", bias, gain=0.1, eye=eye)
        self._weights, self.network_of = flat(first)
        rate = optax.cosine_decay_schedule(settings.learning_rate, settings.updates, 0.05)
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(settings.clip or np.inf), optax.adam(rate, b2=0.95)
        )

    def begin(self, shards: Sequence[int] = (0,)) -> BpttState:
        first = self.worlds.begin(self.settings.seed, self.settings.spread, shards)
        return BpttState(self._weights, self._optimizer.init(self._weights), first)

    def cost(self, weights: Array, state: Any) -> tuple[Array, Any]:
        """Return the mean cost of a horizon; the state after it, terms, and which steps acted."""
        network: Network = self.network_of(weights)
        clip, samples = self.settings.clip_action, self.worlds.n * self.settings.horizon

        def fly(state: Any, _: None) -> tuple[Any, tuple[Array, Array, Array]]:
            action = network.apply(self.worlds.observe(state))
            if clip is not None:
                action = bounded(action, clip / samples)
            after, step = self.worlds.step(state, action)
            return after, (step.cost.mean(), step.terms, ~step.begins)

        # Computing a step again takes less time than compiling code that stores its parts, except
        # for pictures.
        stored = jax.checkpoint_policies.save_only_these_names(PICTURE)
        fly = jax.checkpoint(fly, prevent_cse=False, policy=stored)
        state, (costs, *found) = jax.lax.scan(fly, state, None, length=self.settings.horizon)
        return costs.mean(), (state, *found)

    def update(self, now: BpttState, inputs: Array) -> tuple[BpttState, dict[str, Array]]:
        slope = jax.value_and_grad(self.cost, has_aux=True)
        (cost, (state, *found)), gradient = slope(now.weights, now.worlds)
        cost, gradient = together((cost, gradient), self.worlds)
        # The gradient of a drone that turns faster and faster may overflow.
        gradient = jnp.where(jnp.isfinite(gradient).all(), gradient, 0.0)
        change, optimizer = self._optimizer.update(gradient, now.optimizer)
        state = self.worlds.ended(state, inputs)
        return BpttState(now.weights + change, optimizer, state), means(
            cost, found[0], found[1], self.worlds
        )

    def network(self, now: BpttState) -> Network:
        return self.network_of(np.asarray(now.weights))
