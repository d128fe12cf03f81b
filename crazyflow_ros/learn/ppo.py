"""Proximal policy optimisation with the clipped objective and generalised advantages.

Schulman et al., "Proximal Policy Optimization Algorithms", https://arxiv.org/abs/1707.06347, and
"High-Dimensional Continuous Control Using Generalized Advantage Estimation",
https://arxiv.org/abs/1506.02438. Numbers in parentheses below are those of equations in these
papers. The physics is not differentiated.
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
from crazyflow_ros.learn.batch import Batch, batch
from crazyflow_ros.learn.costs import Cost
from crazyflow_ros.learn.learner import (
    CHUNK,
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
class PpoSettings(Settings):
    """Settings of `Ppo`."""

    horizon: int = 32
    updates: int = 2000
    learning_rate: float = 6e-3
    hidden: int = 48
    episode: int = 8
    epochs: int = 4
    """Passes over the samples of an update."""
    minibatches: int = 4
    """Parts of the samples, each for one step of the optimiser; a divisor of their number."""
    discount: float = 0.95
    trace: float = 0.95
    """Lambda of the advantages."""
    clip: float = 0.2
    """Largest change of the ratio of probabilities that is rewarded."""
    value_weight: float = 0.5
    bound_weight: float = 0.1
    """Weight of the squared amounts by which mean actions leave the range of actions."""
    deviation: float = 0.6
    """Standard deviation of the actions in the first update."""
    final_deviation: float = 0.06
    """Standard deviation of the actions in the last update; between them it falls exponentially."""
    failure: float = 10.0
    """With a `cost`: that of each step after an end without success, which no cost covers."""
    worst: float | None = None
    """Largest cost of a step, to which larger ones are clipped; None for no clipping."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("discount", "trace"):
            if getattr(self, name) >= 1:
                raise ValueError(f"{name} must be below 1, got {getattr(self, name)}")


class Weights(NamedTuple):
    """The networks that are trained."""

    actor: Network
    """Observation to the mean of the actions."""
    critic: Network
    """Observation and what only critics are told to the value."""


class Experience(NamedTuple):
    """Steps of the drones; the leading axes are (horizon, N), or those of a minibatch."""

    observation: Array
    action: Array
    log_probability: Array
    value: Array
    cost: Array
    """Cost of the step alone, without those that follow."""
    reward: Array
    ended: Array
    """Bool: the episode ends, and nothing of value follows."""
    late: Array
    """Bool: the episode is cut off, and the next state would have a value."""
    acted: Array
    """Bool: the action had an effect. It has none in the step that begins an episode."""
    told: Array
    """What only critics are told."""
    terms: Array
    """Values of the task's terms."""


class PpoState(NamedTuple):
    """State of a training."""

    weights: Array
    optimizer: Any
    worlds: Any
    updates: Array
    """Number of updates so far."""


class RandomInputs(NamedTuple):
    """Random inputs of an update."""

    ends: Array
    """(num_envs,) bool, episodes that end after the update."""
    action: Array
    """(horizon, N, 4) normal."""
    order: Array
    """(epochs, N) permutations of the drones."""


def log_probability(mean: Array, deviation: Array, action: Array) -> Array:
    """Return the logarithm of the normal density of actions (..., 4), without its constant.

    The constant contains the deviation, which does not change within an update.
    """
    z = (action - mean) / deviation
    return -0.5 * (z * z).sum(axis=-1)


def advantages(
    reward: Array,
    value: Array,
    last_value: Array,
    ended: Array,
    late: Array,
    discount: float,
    trace: float,
) -> Array:
    """Return generalised advantages, (16) of the second paper.

    Args:
        reward: (T, N).
        value: (T, N) of the states before the rewards.
        last_value: (N,) of the state after the last one.
        ended: (T, N) bool, whether no value follows the reward.
        late: (T, N) bool, whether the episode is cut off, and the next state would have a value.
            That state precedes the next reward, because the next step only begins an episode.
        discount: Discount of each step.
        trace: Lambda.

    Returns:
        (T, N).
    """
    following = jnp.concatenate([value[1:], last_value[None]])
    error = reward + discount * jnp.where(ended, 0, following) - value
    goes_on = discount * (1 - (ended | late))

    def back(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        error, goes_on = now
        total = error + goes_on * trace * later
        return total, total

    return jax.lax.scan(back, jnp.zeros_like(last_value), (error, goes_on), reverse=True)[1]


def clipped_objective(ratio: Array, advantage: Array, clip: float) -> Array:
    """Return (7) of the first paper, which is to be maximised, sample by sample.

    Args:
        ratio: Present probability of the action divided by the probability when it was taken.
        advantage: Advantage of the action.
        clip: Epsilon.
    """
    bounded = jnp.clip(ratio, 1 - clip, 1 + clip)
    return jnp.minimum(ratio * advantage, bounded * advantage)


def valued(weights: Weights, told: Array, seen: Array) -> Array:
    """Return the values (...) of observations and of what only critics are told, (..., k)."""
    return weights.critic.apply(jnp.concatenate([told, seen], axis=-1))[..., 0]


class Ppo(Learner):
    """Trains a policy by proximal policy optimisation; see `Learner`."""

    axes: Any = RandomInputs(ends=1, action=2, order=2)  # type: ignore[arg-type]

    def __init__(
        self,
        env: Environment | Batch,
        settings: PpoSettings = PpoSettings(),
        cost: Cost | None = None,
    ) -> None:
        """Prepare a training.

        Args:
            env: The environment, or a batch of drones with its own costs.
            settings: Size and rates of the training.
            cost: Cost of a step in the environment; None for its negative reward. With a cost, an
                episode that ends without success costs `PpoSettings.failure` for ever.

        Raises:
            ValueError: The number of drones is not a multiple of the minibatches, or the
                environment is not suitable for training, see `TrainingWorlds`.
        """
        self.settings, self.worlds = settings, batch(env, cost, settings.scales, settings.fastest)
        drones_of_shard(settings, self.worlds, settings.minibatches)
        rng, size = settings.rng(0), len(self.worlds.scale)
        told = self.worlds.told
        hidden = (settings.hidden, settings.hidden)
        hover, eye = self.worlds.hover_action, self.worlds.observation.eye
        weights = Weights(
            new_network(rng, (size, *hidden, SIZE), "identity", hover, gain=0.1, eye=eye),
            new_network(rng, (told + size, *hidden, 1), "identity", 0.0, gain=0.1, eye=eye),
        )
        self._weights, self.weights_of = flat(weights)
        steps = settings.updates * settings.epochs * settings.minibatches
        rate = optax.cosine_decay_schedule(settings.learning_rate, steps, 0.01)
        self._optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate))

    def begin(self, shards: Sequence[int] = (0,)) -> PpoState:
        optimizer = self._optimizer.init(self._weights)
        first = self.worlds.begin(self.settings.seed, self.settings.spread, shards)
        return PpoState(self._weights, optimizer, first, np.int32(0))  # type: ignore[arg-type]

    def inputs(self, rngs: Sequence[np.random.Generator]) -> RandomInputs:
        """Return the random inputs of a chunk. A minibatch has as many drones of each shard."""
        s, worlds, n_shards = self.settings, self.worlds, len(rngs)
        n, orders, ends, actions = worlds.n // n_shards, [], [], []
        for i, rng in enumerate(rngs):
            drones = np.arange(i * n, (i + 1) * n, dtype=np.int32)
            order = rng.permuted(np.tile(drones, (CHUNK, s.epochs, 1)), axis=-1)
            orders.append(order.reshape(CHUNK, s.epochs, s.minibatches, -1))
            ends.append(rng.random((CHUNK, worlds.num_envs // n_shards)) < 1 / s.episode)
            actions.append(rng.standard_normal((CHUNK, s.horizon, n, SIZE), np.float32))
        joined: Any = np.concatenate
        order = joined(orders, axis=-1).reshape(CHUNK, s.epochs, worlds.n)
        return RandomInputs(joined(ends, axis=1), joined(actions, axis=2), order)

    def deviation(self, updates: Array) -> Array:
        """Return the standard deviation of the actions after a number of updates.

        It is not a learned weight: noise has a cost at once and a benefit only later, so that a
        learned deviation falls before the drone can fly.
        """
        s = self.settings
        return s.deviation * (s.final_deviation / s.deviation) ** (updates / s.updates)

    def _fly(
        self, weights: Weights, deviation: Array, state: Any, noise: Array
    ) -> tuple[Any, Experience]:
        """Return the samples of a horizon.

        Rewards are scaled so that the value of a constant reward is that reward.
        """
        s = self.settings

        def fly(state: Any, noise: Array) -> tuple[Any, Experience]:
            seen, told = self.worlds.observe(state), self.worlds.privileged(state)
            mean, value = weights.actor.apply(seen), valued(weights, told, seen)
            action = mean + deviation * noise
            probability = log_probability(mean, deviation, action)
            after, step = self.worlds.step(state, action)
            reward = (1 - s.discount) * jnp.maximum(-step.cost, -(s.worst or jnp.inf))
            if self.worlds.has_cost:
                reward = jnp.where(step.failed, -s.failure, reward)
            found = (step.cost, reward, step.ended, step.late, ~step.begins, told, step.terms)
            lost = step.failed.reshape(self.worlds.num_envs, -1).all(axis=1)
            after = self.worlds.ended(after, lost)
            return after, Experience(seen, action, probability, value, *found)

        return jax.lax.scan(fly, state, noise)

    def loss(
        self, vector: Array, deviation: Array, samples: Experience, advantage: Array, target: Array
    ) -> Array:
        """Return the loss of samples, (9) of the first paper with bounds in place of entropy.

        Actions are limited to -1 to 1. Noise about a mean far outside would change nothing, so that
        no advantage would ever bring that mean back.
        """
        weights: Weights = self.weights_of(vector)
        mean = weights.actor.apply(samples.observation)
        probability = log_probability(mean, deviation, samples.action)
        ratio = jnp.exp(probability - samples.log_probability)
        value = valued(weights, samples.told, samples.observation)
        gain = clipped_objective(ratio, advantage, self.settings.clip)
        outside = (jnp.maximum(jnp.abs(mean) - 1, 0) ** 2).sum(axis=-1)
        losses = self.settings.value_weight * (value - target) ** 2 - gain
        return (losses + self.settings.bound_weight * outside).mean(where=samples.acted)

    def update(self, now: PpoState, inputs: RandomInputs) -> tuple[PpoState, dict[str, Array]]:
        s, weights = self.settings, self.weights_of(now.weights)
        deviation = self.deviation(now.updates)
        state, samples = self._fly(weights, deviation, now.worlds, inputs.action)
        last = valued(weights, self.worlds.privileged(state), self.worlds.observe(state))
        x = samples
        advantage = advantages(x.reward, x.value, last, x.ended, x.late, s.discount, s.trace)
        target = advantage + samples.value
        centred = advantage - together(advantage.mean(), self.worlds)
        deviation_of_all = jnp.sqrt(together((centred**2).mean(), self.worlds))
        advantage = centred / (deviation_of_all + 1e-8)

        def descend(now: tuple[Array, Any], drones: Array) -> tuple[tuple[Array, Any], None]:
            part = jax.tree.map(lambda x: x[:, drones], (samples, advantage, target))
            gradient = jax.grad(self.loss)(now[0], deviation, *part)
            gradient = together(gradient, self.worlds, part[0].acted.sum())
            change, optimizer = self._optimizer.update(gradient, now[1])
            return (now[0] + change, optimizer), None

        order = inputs.order.reshape(s.epochs * s.minibatches, -1)
        (vector, optimizer), _ = jax.lax.scan(descend, (now.weights, now.optimizer), order)
        state = self.worlds.ended(state, inputs.ends)
        cost = together(samples.cost.mean(), self.worlds)
        found = means(cost, samples.terms, samples.acted, self.worlds)
        return PpoState(vector, optimizer, state, now.updates + 1), found

    def network(self, now: PpoState) -> Network:
        """Return the network of the mean actions."""
        weights: Weights = self.weights_of(np.asarray(now.weights))
        return weights.actor
