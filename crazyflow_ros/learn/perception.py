"""Perception: a policy learns to see what its teacher is told.

The teacher is a policy that observes its goal. The learner has the teacher's network, behind layers
that estimate the observations that it lacks from its pictures and from what it feels. It flies by
its estimates, and learns the right ones where it comes to, so that it meets the consequences of its
errors (DAgger: Ross et al., "A Reduction of Imitation Learning and Structured Prediction to
No-Regret Online Learning", AISTATS 2011, https://arxiv.org/abs/1011.0686).

The learner does not imitate the teacher's actions: where it does not see the goal, the mean of the
teacher's actions for all possible goals would not keep the drone level, whereas the action for the
mean goal does.
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
from crazyflow_ros.learn.costs import square
from crazyflow_ros.learn.learner import (
    Settings,
    check_shards,
    dense_layers,
    ends_of_episodes,
    flat,
    seeing,
    together,
)
from crazyflow_ros.learn.worlds import Batch, TrainingWorlds
from crazyflow_ros.policy.network import Network
from crazyflow_ros.policy.observation import PARTS
from crazyflow_ros.policy.policy import Policy

with extra("learn"):
    import optax


@dataclass(frozen=True, kw_only=True)
class PerceptionSettings(Settings):
    """Settings of `Perception`."""

    learning_rate: float = 0.003
    minibatches: int = 10
    """Parts of the actions of an update, one after the other; divides `horizon`."""
    guided: int = 100
    """Updates in which the teacher flies some of the worlds: all in the first, none after the last.
    """
    near: float = 0.1
    """Squared size below which the error of an estimate counts as it is, and above which in
    relation to the size; in units of the scaled observation."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is out of range; the message names it.
        """
        super().__post_init__()
        if self.horizon % self.minibatches:
            parts = f"minibatches must divide horizon ({self.horizon})"
            raise ValueError(f"{parts}, got {self.minibatches}")


class PerceptionState(NamedTuple):
    """What an update changes."""

    weights: Array
    optimizer: Any
    worlds: Any
    updates: Array


class Perception:
    """Perception of what a teacher is told, a `Learner`.

    Its cost is the squared error of the estimates, in relation to their size.
    """

    axes = 1

    def __init__(
        self, env: Environment, teacher: Policy, settings: PerceptionSettings = PerceptionSettings()
    ) -> None:
        """Prepare a training.

        Args:
            env: The environment, with an eye.
            teacher: A policy for the same drone and actions, without memory and pictures. Its
                observation begins with all parts of the environment's.
            settings: Size and rates of the training.

        Raises:
            ValueError: The teacher does not suit the environment, or the environment is not
                suitable for learning, see `TrainingWorlds`.
        """
        own, other, eye = env.observation.parts, teacher.observation.parts, env.observation.eye
        if eye is None or env.observation.history > 1:
            raise ValueError("perception needs an environment with an eye and without history")
        if other[: len(own)] != own or len(other) == len(own) or teacher.observation.eye:
            raise ValueError(f"the teacher must observe {own} and then more, got {other}")
        if teacher.network.memory.size or teacher.observation.history > 1:
            raise ValueError("the teacher must have no memory and no history")
        if (teacher.action, teacher.freq) != (env.action, env.config.action_freq):
            needed, found = (env.action, env.config.action_freq), (teacher.action, teacher.freq)
            raise ValueError(f"actions of the teacher must be {needed}, got {found}")
        worlds = TrainingWorlds(env, None, settings.scales)
        self.settings, self._motion = settings, worlds.motion
        self.worlds: Batch = worlds
        check_shards(settings, worlds)
        self._teacher, self._felt = teacher, env.observation.motion_size
        self._sizes = [PARTS[part].size for part in other[len(own) :]]
        scale = teacher.std[: self._felt]
        if teacher.mean.any() or not np.array_equal(scale, self.worlds.scale[: self._felt]):
            raise ValueError("the teacher must scale its observations as the environment does")
        rng = settings.rng(0)
        layers = seeing(rng, eye, self._felt)
        sizes = (layers[-1].n_out, settings.hidden, sum(self._sizes))
        layers += dense_layers(rng, sizes, "identity", 0.0, gain=0.1, kept=self._felt)
        self._weights, self.eyes_of = flat(Network(tuple(layers)))
        steps = settings.updates * settings.minibatches
        rate = optax.cosine_decay_schedule(settings.learning_rate, steps, 0.02)
        self._optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))

    def begin(self, shards: Sequence[int] = (0,)) -> PerceptionState:
        first = self.worlds.begin(self.settings.seed, self.settings.spread, shards)
        optimizer = self._optimizer.init(self._weights)
        return PerceptionState(self._weights, optimizer, first, jnp.int32(0))

    def inputs(self, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Return which episodes end, (CHUNK, num_envs) bool."""
        return ends_of_episodes(rngs, self.worlds.num_envs, self.settings.episode)

    def _flown(self, now: PerceptionState) -> tuple[Any, tuple[Array, Array]]:
        """Return the worlds after a horizon, and observations and right estimates in it."""
        eyes: Network = self.eyes_of(now.weights)
        n, share = self.worlds.n, 1 - now.updates / self.settings.guided
        is_guided = (jnp.arange(n) < share * n)[:, None]

        def fly(state: Any, _: None) -> tuple[Any, tuple[Array, Array]]:
            seen = self.worlds.observe(state)
            told = self._teacher.observation(self._motion(state)) / self._teacher.std
            action = self._teacher.network.apply(jnp.where(is_guided, told, eyes.apply(seen)))
            return self.worlds.step(state, action)[0], (seen, told[:, self._felt :])

        return jax.lax.scan(fly, now.worlds, None, length=self.settings.horizon)

    def loss(self, weights: Array, seen: Array, right: Array) -> Array:
        """Return the mean cost of estimates, whose right values are (..., k)."""
        eyes: Network = self.eyes_of(weights)
        estimate = eyes.apply(seen)[..., self._felt :]
        ends = np.cumsum(self._sizes)[:-1].tolist()
        pairs = zip(*(jnp.split(x, ends, axis=-1) for x in (estimate, right)))
        return sum(
            (square(e - x) / (self.settings.near + square(x)) for e, x in pairs), jnp.zeros(())
        ).mean()

    def update(self, now: PerceptionState, inputs: Array) -> tuple[PerceptionState, Array]:
        worlds, samples = self._flown(now)
        Carry = tuple[Array, Any]

        def learn(carry: Carry, part: tuple[Array, Array]) -> tuple[Carry, Array]:
            weights, optimizer = carry
            cost, gradient = together(jax.value_and_grad(self.loss)(weights, *part), self.worlds)
            change, optimizer = self._optimizer.update(gradient, optimizer)
            return (weights + change, optimizer), cost

        k = self.settings.minibatches  # each of actions at regular intervals
        parts = jax.tree.map(lambda x: x.reshape(-1, k, *x.shape[1:]).swapaxes(0, 1), samples)
        (weights, optimizer), costs = jax.lax.scan(learn, (now.weights, now.optimizer), parts)
        worlds = self.worlds.ended(worlds, inputs)
        return PerceptionState(weights, optimizer, worlds, now.updates + 1), costs.mean()

    def network(self, now: PerceptionState) -> Network:
        eyes: Network = self.eyes_of(now.weights)
        return Network((*eyes.layers, *self._teacher.network.layers))
