"""Perception: a policy learns to see what its teacher is told.

The teacher is a policy that observes its goal. The learner has the teacher's network, preceded by
layers that estimate the missing observations from pictures and from the drone's other senses. One
of these layers has a memory, so that the estimates depend on all pictures so far: a single picture
shows no velocity. The learner flies by its own estimates and is corrected wherever it ends up, so
that it experiences the consequences of its errors (DAgger: Ross et al., "A Reduction of Imitation
Learning and Structured Prediction to No-Regret Online Learning", AISTATS 2011,
https://arxiv.org/abs/1011.0686).

The learner does not imitate the teacher's actions: while it cannot see the goal, the mean of the
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
from crazyflow_ros.learn.batch import Batch, TrainingWorlds
from crazyflow_ros.learn.costs import square
from crazyflow_ros.learn.learner import (
    Learner,
    Settings,
    dense_layers,
    drones_of_shard,
    flat,
    recurrent_layer,
    seeing,
    together,
)
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.policy.network import Network
from crazyflow_ros.policy.observation import PARTS
from crazyflow_ros.policy.policy import Policy

with extra("learn"):
    import optax


@dataclass(frozen=True, kw_only=True)
class PerceptionSettings(Settings):
    """Settings of `Perception`."""

    learning_rate: float = 0.003
    minibatches: int = 8
    """Number of equal parts of the drones, each for one step of the optimiser."""
    memory: int = 64
    """Size of the memory of a drone."""
    guided: int = 100
    """Updates in which the teacher flies some of the worlds: all in the first, none after the last.
    """
    near: float = 0.1
    """Squared size below which errors of an estimate are absolute, and above which they are
    relative; in units of the scaled observation."""


class PerceptionState(NamedTuple):
    """State of a training."""

    weights: Array
    optimizer: Any
    worlds: Any
    memory: Array
    """(N, k) of the drones."""
    updates: Array


class Perception(Learner):
    """Learns to estimate from pictures what its teacher is told; see `Learner`.

    The cost is the squared relative error of the estimates.
    """

    def __init__(
        self, env: Environment, teacher: Policy, settings: PerceptionSettings = PerceptionSettings()
    ) -> None:
        """Prepare a training.

        Args:
            env: The environment, with an eye.
            teacher: A policy for the same drone and actions, without memory and pictures, whose
                observation begins with all parts of the environment's.
            settings: Size and rates of the training.

        Raises:
            ValueError: The teacher does not suit the environment, the number of drones is not a
                multiple of the minibatches, or the environment is not suitable for training, see
                `TrainingWorlds`.
        """
        own, other, eye = env.observation.parts, teacher.observation.parts, env.observation.eye
        if eye is None or env.observation.history > 1 or env.observation.told:
            need = "an environment with an eye, without history and observation terms"
            raise ValueError(f"perception needs {need}")
        if other[: len(own)] != own or len(other) == len(own) or teacher.observation.eye:
            raise ValueError(f"the teacher must observe {own} and then more, got {other}")
        if teacher.network.memory.size or teacher.observation.history > 1:
            raise ValueError("the teacher must have no memory and no history")
        if (teacher.action, teacher.freq) != (env.action, env.config.action_freq):
            needed, found = (env.action, env.config.action_freq), (teacher.action, teacher.freq)
            raise ValueError(f"actions of the teacher must be {needed}, got {found}")
        worlds = TrainingWorlds(env, None, settings.scales, settings.fastest)
        self.settings, self._motion = settings, worlds.motion
        self.worlds: Batch = worlds
        self._of_shard = drones_of_shard(settings, worlds, settings.minibatches)
        self._teacher, self._felt = teacher, env.observation.motion_size
        self._sizes = [PARTS[part].size for part in other[len(own) :]]
        scale = teacher.std[: self._felt]
        if teacher.mean.any() or not np.array_equal(scale, self.worlds.scale[: self._felt]):
            raise ValueError("the teacher must scale its observations as the environment does")
        self._weights, self.eyes_of = flat(self._first(eye))
        steps = settings.updates * settings.minibatches
        rate = optax.cosine_decay_schedule(settings.learning_rate, steps, 0.02)
        self._optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))

    def _first(self, eye: Eye) -> Network:
        """Return random layers from observations to what the teacher is told."""
        rng, felt, settings = self.settings.rng(0), self._felt, self.settings
        seen = seeing(rng, eye, felt)
        sizes = (seen[-1].n_out, settings.hidden)
        units = dense_layers(rng, sizes, "fast_tanh", 0.0, gain=1.0, kept=felt)
        memory = recurrent_layer(rng, settings.hidden, settings.memory, kept=felt)
        sizes = (memory.n_out, sum(self._sizes))
        estimates = dense_layers(rng, sizes, "identity", 0.0, gain=0.1, kept=felt)
        return Network((*seen, *units, memory, *estimates))

    def begin(self, shards: Sequence[int] = (0,)) -> PerceptionState:
        first = self.worlds.begin(self.settings.seed, self.settings.spread, shards)
        optimizer = self._optimizer.init(self._weights)
        memory = jnp.zeros((self.worlds.n, self.settings.memory), self._weights.dtype)
        return PerceptionState(self._weights, optimizer, first, memory, jnp.int32(0))

    def _flown(self, now: PerceptionState) -> tuple[Any, Array, tuple[Array, Array, Array]]:
        """Return the worlds and memories after a horizon, and samples of it, (horizon, N, ...).

        Samples are observations, right estimates, and whether an episode begins.
        """
        eyes: Network = self.eyes_of(now.weights)
        n, share = self.worlds.n, 1 - now.updates / self.settings.guided
        is_guided = (jnp.arange(n) % self._of_shard < share * self._of_shard)[:, None]

        def fly(carry: Any, _: None) -> tuple[Any, tuple[Array, Array, Array]]:
            state, memory, begins = carry
            memory = jnp.where(begins[:, None], eyes.memory, memory)
            seen = self.worlds.observe(state)
            told = self._teacher.observation(self._motion(state)) / self._teacher.std
            estimated, memory = eyes(seen, memory)
            action = self._teacher.network.apply(jnp.where(is_guided, told, estimated))
            state, step = self.worlds.step(state, action)
            return (state, memory, step.begins), (seen, told[:, self._felt :], begins)

        first = now.worlds, now.memory, jnp.zeros(n, bool)
        (worlds, memory, begins), samples = jax.lax.scan(
            fly, first, None, length=self.settings.horizon
        )
        return worlds, jnp.where(begins[:, None], eyes.memory, memory), samples

    def loss(
        self, weights: Array, seen: Array, right: Array, begins: Array, memory: Array
    ) -> Array:
        """Return the mean cost of estimates.

        Args:
            weights: Weights of the layers that estimate.
            seen: (T, N, size) observations.
            right: (T, N, k) right estimates.
            begins: (T, N) bool, whether an episode begins.
            memory: (N, m) before the first observation.
        """
        eyes: Network = self.eyes_of(weights)
        estimate = eyes.in_turn(seen, memory, begins)[..., self._felt :]
        ends = np.cumsum(self._sizes)[:-1].tolist()
        pairs = zip(*(jnp.split(x, ends, axis=-1) for x in (estimate, right)))
        return sum(
            (square(e - x) / (self.settings.near + square(x)) for e, x in pairs), jnp.zeros(())
        ).mean()

    def update(
        self, now: PerceptionState, inputs: Array
    ) -> tuple[PerceptionState, dict[str, Array]]:
        worlds, memory, samples = self._flown(now)
        Carry = tuple[Array, Any]

        def learn(carry: Carry, part: tuple[Array, ...]) -> tuple[Carry, Array]:
            weights, optimizer = carry
            cost, gradient = together(jax.value_and_grad(self.loss)(weights, *part), self.worlds)
            change, optimizer = self._optimizer.update(gradient, optimizer)
            return (weights + change, optimizer), cost

        k = self.settings.minibatches  # each of drones at regular intervals
        flights = [x.reshape(len(x), -1, k, *x.shape[2:]) for x in (*samples, now.memory[None])]
        *parts, before = (jnp.moveaxis(x, 2, 0) for x in flights)
        first = now.weights, now.optimizer
        (weights, optimizer), costs = jax.lax.scan(learn, first, (*parts, before[:, 0]))
        worlds = self.worlds.ended(worlds, inputs)
        state = PerceptionState(weights, optimizer, worlds, memory, now.updates + 1)
        return state, {"cost": costs.mean()}

    def network(self, now: PerceptionState) -> Network:
        eyes: Network = self.eyes_of(now.weights)
        return Network((*eyes.layers, *self._teacher.network.layers))
