"""Imitation of a teacher that knows what the learner has to see.

The learner flies, and learns what the teacher would have done where the learner has come to (DAgger:
Ross et al., "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
Learning", AISTATS 2011, https://arxiv.org/abs/1011.0686). So a policy that sees pictures learns from
one that observes the goal, as in Xing et al., "Bootstrapping Reinforcement Learning with Imitation
for Vision-Based Agile Flight", CoRL 2024, https://arxiv.org/abs/2403.12203.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.extras import extra
from crazyflow_ros.learn.learner import (
    Settings,
    check_shards,
    ends_of_episodes,
    flat,
    new_network,
    together,
)
from crazyflow_ros.learn.worlds import TrainingWorlds
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.policy.network import Network
from crazyflow_ros.policy.policy import Policy

with extra("learn"):
    import optax


@dataclass(frozen=True, kw_only=True)
class ImitationSettings(Settings):
    """Settings of `Imitation`."""

    learning_rate: float = 0.003
    minibatches: int = 10
    """Parts of the actions of an update, one after the other; divides `horizon`."""
    guided: int = 60
    """Updates in which the teacher flies some of the worlds: all in the first, none after the last.
    """

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is out of range; the message names it.
        """
        super().__post_init__()
        if self.horizon % self.minibatches:
            parts = f"minibatches must divide horizon ({self.horizon})"
            raise ValueError(f"{parts}, got {self.minibatches}")


class ImitationState(NamedTuple):
    """What an update changes."""

    weights: Array
    optimizer: Any
    worlds: Any
    updates: Array


class Imitation:
    """Imitation of a teacher, a `Learner`. Its cost is the squared difference of the actions."""

    axes = 1

    def __init__(
        self, env: Environment, teacher: Policy, settings: ImitationSettings = ImitationSettings()
    ) -> None:
        """Prepare a training.

        Args:
            env: The environment.
            teacher: A policy without memory whose actions mean the same as in the environment, and
                that sees no pictures.
            settings: Size and rates of the training.

        Raises:
            ValueError: The teacher does not suit the environment, or the environment is not
                suitable for learning, see `TrainingWorlds`.
        """
        self.settings, self.worlds = settings, TrainingWorlds(env, None, settings.scales)
        check_shards(settings, self.worlds)
        if (teacher.action, teacher.freq) != (env.action, env.config.action_freq):
            own, its = (env.action, env.config.action_freq), (teacher.action, teacher.freq)
            raise ValueError(f"actions of the teacher must be {own}, got {its}")
        if teacher.network.memory.size or teacher.observation.repeated_size:
            raise ValueError("a teacher must have no memory and no history")
        self._teacher = teacher
        sizes = (len(self.worlds.scale), settings.hidden, settings.hidden, SIZE)
        hover, eye = self.worlds.hover_action, env.observation.eye
        first = new_network(
            settings.rng(0), sizes, "tanh", np.arctanh(hover), gain=0.1, eye=eye
        )
        self._weights, self.network_of = flat(first)
        steps = settings.updates * settings.minibatches
        rate = optax.cosine_decay_schedule(settings.learning_rate, steps, 0.02)
        self._optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))

    def begin(self, shards: Sequence[int] = (0,)) -> ImitationState:
        first = self.worlds.begin(self.settings.seed, self.settings.spread, shards)
        optimizer = self._optimizer.init(self._weights)
        return ImitationState(self._weights, optimizer, first, jnp.int32(0))

    def inputs(self, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Return which episodes end, (CHUNK, num_envs) bool."""
        return ends_of_episodes(rngs, self.worlds.num_envs, self.settings.episode)

    def _flown(self, now: ImitationState) -> tuple[Any, tuple[Array, Array]]:
        """Return the worlds after a horizon, and observations and the teacher's actions in it."""
        network: Network = self.network_of(now.weights)
        n, guided = self.worlds.n, 1 - now.updates / self.settings.guided
        is_guided = (jnp.arange(n) < guided * n)[:, None]

        def fly(state: Any, _: None) -> tuple[Any, tuple[Array, Array]]:
            seen, motion = self.worlds.observe(state), self.worlds.motion(state)
            before = self._teacher.initial_state((n,))._replace(action=motion.action)
            right = self._teacher.act(before, motion)[0].action
            action = jnp.where(is_guided, right, network.apply(seen))
            return self.worlds.step(state, action)[0], (seen, right)

        return jax.lax.scan(fly, now.worlds, None, length=self.settings.horizon)

    def loss(self, weights: Array, seen: Array, right: Array) -> Array:
        """Return the mean squared difference from the right actions, (..., 4)."""
        network: Network = self.network_of(weights)
        return ((network.apply(seen) - right) ** 2).mean()

    def update(self, now: ImitationState, inputs: Array) -> tuple[ImitationState, Array]:
        worlds, samples = self._flown(now)

        def learn(
            carry: tuple[Array, Any], part: tuple[Array, Array]
        ) -> tuple[tuple[Array, Any], Array]:
            weights, optimizer = carry
            found = jax.value_and_grad(self.loss)(weights, *part)
            cost, gradient = together(found, self.worlds)
            change, optimizer = self._optimizer.update(gradient, optimizer)
            return (weights + change, optimizer), cost

        k = self.settings.minibatches  # each of actions at regular intervals
        parts = jax.tree.map(lambda x: x.reshape(-1, k, *x.shape[1:]).swapaxes(0, 1), samples)
        (weights, optimizer), costs = jax.lax.scan(learn, (now.weights, now.optimizer), parts)
        worlds = self.worlds.ended(worlds, inputs)
        return ImitationState(weights, optimizer, worlds, now.updates + 1), costs.mean()

    def network(self, now: ImitationState) -> Network:
        network: Network = self.network_of(now.weights)
        return network
