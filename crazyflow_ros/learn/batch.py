"""Environments as algorithms see them: batches of drones with scaled observations and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh

from crazyflow_ros.control import Control
from crazyflow_ros.drones import AnyDrone, resolve
from crazyflow_ros.dynamics import first_principles
from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.episodes import ENDED, OBSERVATION, OVER, PRIVILEGED, TERMS
from crazyflow_ros.learn.costs import Cost
from crazyflow_ros.policy.action import SIZE, Action
from crazyflow_ros.policy.observation import PARTS, Motion, Observation
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.pipeline import name_of
from crazyflow_ros.xla.struct import Struct

P = TypeVar("P", bound=Struct)

SCALES = {
    "velocity": 2.0,
    "velocity_error": 2.0,
    "body_velocity": 2.0,
    "body_velocity_error": 2.0,
    "body_goal_velocity": 2.0,
    "body_goal_acceleration": 5.0,
    "body_rates": 8.0,
}
"""Numbers by which parts of observations are divided; other parts are not."""

Scales = Mapping[str, float]
"""Scales of further parts, or other scales of these parts."""

Spread = Mapping[str, tuple[float, float]]
"""Smallest and largest factor of parameters of the dynamics."""

PICTURE = "picture"
"""Name of pictures in `jax.checkpoint`, which stores them so that they are not taken twice."""

NO_AXIS = -1
"""Stands for an axis of worlds where all worlds share an array."""


class Step(NamedTuple):
    """Results of a step of N drones."""

    cost: Array
    """(N,), 0 in a step that only begins an episode."""
    ended: Array
    """(N,) bool: the episode ends before its time, and nothing of value follows."""
    failed: Array
    """(N,) bool: the episode ends without success."""
    late: Array
    """(N,) bool: the episode ends because it has lasted long enough. The next observation is its
    final one; the next step begins an episode."""
    begins: Array
    """(N,) bool: the step ignored its action, because it began an episode or the drone has ended
    its own."""
    terms: Array
    """(N, k) values of the task's terms."""


class Batch(Protocol):
    """N drones that one policy flies, as pure functions.

    With a mesh, these are the drones of one of its devices, and `jax.shard_map` computes the
    functions on each of them.

    Attributes:
        n: Number of drones.
        num_envs: Number of worlds.
        mesh: Devices, each of which has this many worlds; None for one.
        has_cost: Whether the costs differ from the negative reward of an environment.
        scale: (size,) numbers by which observations are divided.
        hover_action: (4,) action with which a drone approximately hovers.
        observation, action, freq, drone, dynamics: Those of a `Policy`.
        about: Further properties that a checkpoint shares with its training.
        terms: Names of the task's terms.
        told: Number of `privileged` numbers.
    """

    terms: tuple[str, ...]
    told: int
    n: int
    num_envs: int
    mesh: Mesh | None
    has_cost: bool
    scale: np.ndarray
    hover_action: np.ndarray
    observation: Observation
    action: Action
    freq: int
    drone: str
    dynamics: str
    about: dict[str, Any]

    def begin(self, seed: int, spread: Spread, shards: Sequence[int] = (0,)) -> Any:
        """Return a state: a pytree of arrays.

        Args:
            seed: Seed of all episodes, and of the drones.
            spread: How much the drones differ, in all episodes alike. The logarithms of the factors
                are uniformly distributed.
            shards: Indices of the shards of these worlds, see `Settings.shards`.

        Raises:
            ValueError: The dynamics have no such parameter, or its range is empty.
        """
        ...

    @property
    def drones(self) -> Any:
        """Arrays that the functions read in addition to the state, as a pytree."""
        ...

    def with_drones(self, drones: Any) -> Self:
        """Return these worlds with other `drones`."""
        ...

    def axes(self, state: Any, drones: Any) -> tuple[Any, Any]:
        """Return the axis of worlds, or `NO_AXIS`, of each array of both."""
        ...

    def observe(self, state: Any) -> Array:
        """Return observations, divided by `scale`: (N, size)."""
        ...

    def privileged(self, state: Any) -> Array:
        """Return what only critics are told, (N, k)."""
        ...

    def step(self, state: Any, action: Array) -> tuple[Any, Step]:
        """Return the state after actions (N, 4), and what happened."""
        ...

    def ended(self, state: Any, worlds: Array) -> Any:
        """Return the state after the episodes of some worlds, (num_envs,) bool, have ended.

        New episodes begin in all worlds without one, in the next step at the latest.
        """
        ...


class TrainingWorlds:
    """The drones of an environment, N = num_envs * n_drones, a `Batch`."""

    def __init__(
        self,
        env: Environment,
        cost: Cost | None,
        scales: Scales | None = None,
        fastest: float | None = None,
    ) -> None:
        """Prepare an environment.

        Args:
            env: The environment.
            cost: Cost of a step; None for the negative reward of the environment.
            scales: Scales of parts of observations, where they differ from `SCALES`.
            fastest: See `Settings`.

        Raises:
            ValueError: A scale is not positive, or worlds of the environment do not begin new
                episodes in the step after the end of one.
        """
        config, task = env.config, env.task
        self.mesh, env = env.mesh, env.of_device()
        self.env, self._cost, self.has_cost = env, cost, cost is not None
        self._fastest, self.terms = fastest or np.inf, env.episodes.names
        private = env.episodes.plugins.get(PRIVILEGED)
        self.told = 0 if private is None else private.shape[-1]
        self.num_envs, self.n = env.num_envs, env.num_envs * config.n_drones
        self.observation, self.action, self.freq = env.observation, env.action, config.action_freq
        self.drone, self.dynamics = resolve(config.drone), str(config.dynamics)
        self.scale = scale_of(env.observation, scales)
        self.hover_action = hover_action(config.drone, env.action)
        given: Any = task  # whose protocol does not say that it is a dataclass
        is_data = is_dataclass(given) and not isinstance(given, type)
        values = asdict(given) if is_data else {}
        self.about = {"task": type(task).__name__, "fields": values, "ticks": config.freq}
        self.about["cost"] = name_of_cost(cost)
        if config.randomizers:
            self.about["drawn"] = [
                repr(x) if is_dataclass(x) else name_of(x) for x in config.randomizers
            ]
        _ = env.ended(env.sim.default_data, jnp.zeros(env.num_envs, bool))

    def begin(self, seed: int, spread: Spread, shards: Sequence[int] = (0,)) -> SimData:
        """The first step begins the episodes."""
        key = jax.random.key(seed)
        keys, each = [key if k == 0 else jax.random.fold_in(key, k) for k in shards], self.num_envs
        parts = [jax.random.split(key, each // len(shards)) for key in keys]
        state = self.env.before_episodes(jnp.concatenate(parts))
        drones = (self.num_envs, self.env.config.n_drones)
        return state.replace(params=varied(state.params, drones, seed, spread, shards))

    @property
    def drones(self) -> None:
        """The state holds everything."""
        return None

    def with_drones(self, drones: None) -> Self:
        del drones
        return self

    def axes(self, state: SimData, drones: None) -> tuple[Any, None]:
        axes = [0 if own else NO_AXIS for own in self.env.sim.owned(state)]
        return jax.tree.unflatten(jax.tree.structure(state), axes), drones

    def observe(self, state: SimData) -> Array:
        """Pictures have no derivatives."""
        eyes, picture = self.env.eyes, None
        if eyes is not None:
            taken = jax.lax.stop_gradient(eyes(state)).reshape(self.n, *eyes.eye.shape)
            picture = checkpoint_name(taken, PICTURE)
        frames = state.plugins[OBSERVATION].reshape(self.n, -1)
        return self.observation.with_picture(frames, picture) / self.scale

    def privileged(self, state: SimData) -> Array:
        return state.plugins.get(PRIVILEGED, jnp.zeros((self.n, 0))).reshape(self.n, -1)

    def step(self, state: SimData, action: Array) -> tuple[SimData, Step]:
        """A step that begins an episode has no other effect.

        A world whose state has overflowed, or in which a drone turns faster than `fastest`, is cut
        off. With a cost, this counts as a failure; otherwise the value of its last state stands for
        all that would follow.
        """
        env, n_drones = self.env, self.env.config.n_drones
        shape = (env.num_envs, SIZE) if n_drones == 1 else (env.num_envs, n_drones, SIZE)
        begins = self._of_drones(state.plugins[ENDED])
        after, result = env.step(state, action.reshape(shape))
        rates = after.states.ang_vel
        useless = ~((rates * rates).sum(axis=-1) < self._fastest**2).all(axis=1)  # NaN, too
        if self._cost is None:
            cost = -result.reward.reshape(self.n)
            cost = jnp.where(jnp.isfinite(cost), cost, 0.0)
            ended, late = result.terminated, result.truncated | useless
        else:
            cost = self._cost(self.motion(state), self.motion(after))
            cost = jnp.where(self._of_drones(useless), 0.0, cost)
            ended, late = result.terminated | useless, result.truncated
        flags = (ended, ended & ~result.success, late & ~ended)
        ended, failed, late = map(self._of_drones, flags)
        if OVER in state.plugins:
            was, now = (x.plugins[OVER].reshape(-1) for x in (state, after))
            over = (was > 0) & ~begins
            given_up = ended & (now == 0) & ~over  # of no use
            ended, failed = ((now > 0) & ~over) | given_up, ((now == 1) & ~over) | given_up
            begins |= over
        cost, late = jnp.where(begins, 0.0, cost), late & ~ended
        values = after.plugins.get(TERMS, jnp.zeros((self.n, 0))).reshape(self.n, -1)
        after = env.ended(self._finite(useless, state, after), useless)
        return after, Step(cost, ended, failed, late, begins, values)

    def ended(self, state: SimData, worlds: Array) -> SimData:
        return self.env.ended(state, worlds)

    def _finite(self, useless: Array, before: SimData, after: SimData) -> SimData:
        """Return the state after a step, or the one before it where the new one is of no use."""

        def choose(old: Array, new: Array) -> Array:
            return jnp.where(useless[:, None, None], old, new)

        seen = choose(before.plugins[OBSERVATION], after.plugins[OBSERVATION])
        return after.replace(
            states=jax.tree.map(choose, before.states, after.states),
            payload=jax.tree.map(choose, before.payload, after.payload),
            plugins=after.plugins | {OBSERVATION: seen},
        )

    def motion(self, state: SimData) -> Motion:
        """Return the motion of the drones and of their goals, arrays (N, k)."""
        motion: Motion = jax.tree.map(lambda x: x.reshape(self.n, -1), self.env.motion(state))
        return motion

    def _of_drones(self, worlds: Array) -> Array:
        return jnp.repeat(worlds.reshape(-1), self.env.config.n_drones)


def batch(
    env: Environment | Batch, cost: Cost | None, scales: Scales, fastest: float | None
) -> Batch:
    """Return an environment as a batch of drones; a batch is returned as it is."""
    return TrainingWorlds(env, cost, scales, fastest) if isinstance(env, Environment) else env


def name_of_cost(cost: Cost | None) -> str:
    """Return the name of a cost, which is the same in another process."""
    return "the task's" if cost is None else str(getattr(cost, "__qualname__", cost))


def scale_of(observation: Observation, scales: Scales | None = None) -> np.ndarray:
    """Return the numbers (size,) by which observations are divided.

    Raises:
        ValueError: The scale of a part is not positive.
    """
    known, parts = {**SCALES, **(scales or {})}, observation.parts
    for part, scale in known.items():
        if not 0 < scale < np.inf:
            raise ValueError(f"scales: {part} must be finite and above 0, got {scale}")
    frame = [np.full(PARTS[part].size, known.get(part, 1.0), np.float32) for part in parts]
    pixels = np.ones(observation.size - observation.motion_size, np.float32)
    return np.concatenate([*frame * observation.history, pixels])


def hover_action(drone: AnyDrone, action: Action) -> np.ndarray:
    """Return the action (4,) with which a drone approximately hovers."""
    if action.control is not Control.rotor_vel:
        return np.zeros(SIZE, np.float32)  # as in `Action.of`
    nominal = jax.tree.map(np.asarray, first_principles.Params.create(resolve(drone)))
    hover = float(nominal.hover_thrust[0]) / 4
    k0, k1, k2 = np.asarray(nominal.rpm2thrust[0], float)
    speed = (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - hover))) / (2 * k2)
    return np.asarray((speed - np.array(action.offset)) / np.array(action.scale), np.float32)


def varied(
    params: P, drones: tuple[int, ...], seed: int, spread: Spread, shards: Sequence[int] = (0,)
) -> P:
    """Return parameters that differ between drones, see `Batch.begin`."""
    rngs = [np.random.default_rng([seed, 1, shard]) for shard in shards]
    changes: dict[str, np.ndarray] = {}
    nominal = vars(params)
    shape = (drones[0] // len(shards), *drones[1:], 1, 1)
    for name, (low, high) in spread.items():
        if name not in nominal or nominal[name].ndim < 2:
            raise ValueError(f"spread: the dynamics have no matrix {name!r}")
        if not 0 < low <= high < np.inf:
            raise ValueError(f"spread: {name} must rise from above 0, got {(low, high)}")
        logarithms = [rng.uniform(np.log(low), np.log(high), shape) for rng in rngs]
        factor = np.exp(np.concatenate(logarithms)).astype(np.float32)
        changes[name] = np.asarray(nominal[name]) * factor  # JAX would compile this
        if name == "J":
            changes["J_inv"] = np.asarray(nominal["J_inv"]) / factor
    return params.replace(**changes)
