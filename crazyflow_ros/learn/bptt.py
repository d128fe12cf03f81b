"""Back-propagation through time: the gradient of the cost of a flight, through its physics.

All drones fly `horizon` actions from where the last update left them, and the policy follows the
exact gradient of their mean cost. Short windows keep the gradient from exploding (Xu et al.,
"Accelerated Policy Learning with Parallel Differentiable Simulation", ICLR 2022,
https://arxiv.org/abs/2204.07137); we need none of their critics, because the cost contains the
velocity at which to approach the goal. For quadrotors: Heeg et al., "Learning Quadrotor Control
From Visual Features Using Differentiable Simulation", https://arxiv.org/abs/2410.15979.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from crazyflow_ros.extras import extra
from crazyflow_ros.learn.flight import State
from crazyflow_ros.learn.training import CHUNK, Settings, flat, new_network, restarted
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.policy.network import Network

with extra("learn"):
    import optax


@dataclass(frozen=True, kw_only=True)
class BpttSettings(Settings):
    """Settings of `Bptt`."""

    clip: float = 1.0
    """Largest norm of a gradient."""


class Now(NamedTuple):
    """What an update changes."""

    weights: Array
    optimizer: Any
    flights: State


class Bptt:
    """Back-propagation through time, a `Learner`."""

    def __init__(self, settings: BpttSettings) -> None:
        self.settings, self.flights = settings, settings.flights()
        rng, size = settings.rng(0), self.flights.observation.size
        sizes = (size, settings.hidden, settings.hidden, SIZE)
        bias = float(np.arctanh(self.flights.hover_action))
        self._weights, self.network_of = flat(new_network(rng, sizes, "tanh", bias, gain=0.1))
        self._first = self.flights.begin(rng, settings.start)
        rate = optax.cosine_decay_schedule(settings.learning_rate, settings.updates, 0.05)
        self._optimizer = optax.chain(
            optax.clip_by_global_norm(settings.clip), optax.adam(rate, b2=0.95)
        )

    def begin(self) -> Now:
        """See `Learner`."""
        return Now(self._weights, self._optimizer.init(self._weights), self._first)

    def inputs(self, rng: np.random.Generator) -> tuple[State, np.ndarray]:
        """Return new beginnings, and which drones take them, (CHUNK, N) bool."""
        fresh = self.flights.begin(rng, self.settings.start, (CHUNK,))
        return fresh, rng.random((CHUNK, self.settings.worlds)) < 1 / self.settings.episode

    def cost(self, weights: Array, state: State) -> tuple[Array, State]:
        """Return the mean cost of a horizon, and the state after it."""
        network: Network = self.network_of(weights)

        def fly(state: State, _: None) -> tuple[State, Array]:
            after = self.flights.step(state, network.apply(self.flights.observe(state)))
            return after, self.flights.cost(state, after).mean()

        # To compute a step again takes less time than to compile what stores its parts.
        fly = jax.checkpoint(fly, prevent_cse=False)
        state, costs = jax.lax.scan(fly, state, None, length=self.settings.horizon)
        return costs.mean(), state

    def update(self, now: Now, inputs: tuple[State, Array]) -> tuple[Now, Array]:
        """See `Learner`."""
        slope = jax.value_and_grad(self.cost, has_aux=True)
        (cost, state), gradient = slope(now.weights, now.flights)
        change, optimizer = self._optimizer.update(gradient, now.optimizer)
        state = restarted(self.flights, state, *inputs)
        return Now(now.weights + change, optimizer, state), cost

    def network(self, now: Now) -> Network:
        """See `Learner`."""
        network: Network = self.network_of(now.weights)
        return network
