"""Environments as pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from crazyflow_ros.drones import check_quadrotor
from crazyflow_ros.envs.beginning import Beginning, terms_of
from crazyflow_ros.envs.environment_options import Autoreset, Configuration
from crazyflow_ros.envs.episodes import (
    ACTION,
    ENDED,
    FINAL,
    OBSERVATION,
    OVER,
    PRIVILEGED,
    REWARD,
    SUCCESS,
    TERMINATED,
    TERMS,
    TRUNCATED,
    Episodes,
)
from crazyflow_ros.envs.eyes import Eyes
from crazyflow_ros.envs.task import Task
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.compile.programs import Composed, Stepping
from crazyflow_ros.sim.compile.stepping import tick_of
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.worlds import inferring, put

Seen = Array | dict[str, Array]
"""Observations, (N, size), or (N, M, size) with several drones per world. With an eye, a dictionary
of these, "motion", and of pictures by their kind, (N, height, width, channels)."""


class Timestep(NamedTuple):
    """Results of a step of N worlds. With one drone per world, arrays have no axis of drones."""

    observation: Seen
    """See `Seen`."""
    reward: Array
    """(N,), or (N, M)."""
    terminated: Array
    """(N,) bool: the drones have completed their task, or one has failed."""
    truncated: Array
    """(N,) bool: the episode has lasted long enough."""
    success: Array
    """(N,) bool: the drones have completed their task."""
    final_observation: Seen
    """Like `observation`, before a reset in the same step."""
    terms: Mapping[str, Array] = {}
    """Values of the task's terms by name, like `reward`: weighted rewards, and ends, 1 or 0."""
    privileged: Array | None = None
    """(N, size), or (N, M, size): what only critics are told, see `Terms`."""
    over: Array | None = None
    """(N, M) int, with `ending="alone"`: 1 for a drone that has failed in this episode, 2 for one
    that has completed its task."""


class Environment:
    """A task of drones in parallel worlds, as pure functions on JAX arrays.

    The state of an environment is a `SimData` whose plugins hold the state of the episodes.
    `reset` and `step` can be transformed by `jax.jit`, `jax.lax.scan`, `jax.vmap` and `jax.grad`.
    On a CPU, a step is a single kernel, which computes the worlds block by block.

    Attributes:
        num_envs: Number of worlds.
        task: The task.
        config: The options.
        observation: Composition of observations.
        action: Meaning of actions.
        mesh: Devices of the worlds, or None.
        eyes: Function from the state to the pictures of the drones; None without an eye.
        max_episode_steps: Steps after which an episode is truncated.
        episodes: What happens around the ticks of a step.
        sim: The simulation. Stages added to its pipelines act from the next step or reset on.
    """

    def __init__(self, num_envs: int, task: Task, mesh: Mesh | None = None, **options: Any) -> None:
        """Build the worlds.

        Args:
            num_envs: Number of worlds.
            task: Task of the drones.
            mesh: Devices among which the worlds are divided, see `Sim`; None for one device.
            **options: See `Configuration`.

        Raises:
            ValueError: An argument is out of range; the message names it.
            TypeError: There is no such option.
        """
        self.num_envs = whole("num_envs", num_envs)
        if not isinstance(task, Task):
            raise ValueError(f"task must be a Task, such as Reach(), got {task!r}")
        self.task, self.config = task, (config := Configuration(**options))
        self.mesh, self._options = mesh, options
        self.observation, self.action = config.observations, config.actions
        check_quadrotor(config.drone, "an environment")
        steps = config.max_episode_steps
        self.max_episode_steps = steps or max(1, round(task.seconds * config.action_freq))
        self.sim = Sim(
            num_envs,
            config.n_drones,
            drone=config.drone,
            dynamics=config.dynamics,
            control=self.action.control,
            freq=config.freq,
            attitude_freq=config.freq,
            body_rate_freq=config.freq,
            force_torque_freq=config.freq,
            scene=str(config.scene or getattr(task, "scene", "floor")),
            forces=config.forces,
            power_distribution=config.power_distribution,
            mesh=mesh,
            payload=getattr(task, "payload", None),
        )
        errors = config.eye_errors
        moves = config.eye is not None and bool(errors.shift or errors.turn)
        self.episodes = Episodes(task, config, self.sim, self.max_episode_steps, moves=moves)
        plugins: dict[str, Any] = self.episodes.plugins
        self.observation = replace(self.observation, told=self.episodes.told)
        if mesh is not None:
            over = NamedSharding(inferring(mesh), PartitionSpec(mesh.axis_names))
            plugins = {name: put(array, over) for name, array in plugins.items()}
        self.sim.data = self.sim.data.replace(plugins=plugins)
        self.sim.build_default_data()
        pipeline = insert_before(self.sim.step_pipeline, "integrate", *config.stages)
        self.sim.step_pipeline = (self.episodes.apply_action, *pipeline)
        events = [x.stage for x in terms_of(task).events.values() if x.seconds is None]
        self.sim.reset_pipeline = (*config.randomizers, *events)
        self.eyes = None if config.eye is None else Eyes(self.sim, task, config.eye, errors)
        if self.eyes is not None and moves:
            self.sim.reset_pipeline += (self.eyes.draw,)
        self._compiled: _Compiled | None = None

    def of_device(self) -> Environment:
        """Return an environment of the worlds of a single device, for `jax.shard_map`.

        It has the same options and the current pipelines.
        """
        if self.mesh is None:
            return self
        own = Environment(self.num_envs // self.mesh.size, self.task, **self._options)
        own.sim.step_pipeline = self.sim.step_pipeline
        own.sim.reset_pipeline = self.sim.reset_pipeline
        return own

    def reset(self, key: Array) -> tuple[SimData, Seen]:
        """Begin an episode in each world.

        Args:
            key: A random key, which makes the episodes reproducible, or one for each world.

        Returns:
            The state, and observations.
        """
        state: SimData = self.compiled.reset(key)
        return state, self._seen(state, state.plugins[OBSERVATION])

    def _reset(self, beginning: Beginning, key: Array) -> SimData:
        state = beginning.all(key)
        seen, state = self.episodes.observed(state, None, jnp.ones(self.num_envs, bool))
        return state.replace(plugins=state.plugins | {OBSERVATION: seen})

    def restart(self, state: SimData, worlds: Array, key: Array) -> tuple[SimData, Seen]:
        """Begin an episode in some worlds, the same one as after `reset(key)`.

        Args:
            state: The state. The other worlds keep theirs.
            worlds: (num_envs,) bool.
            key: A random key.

        Returns:
            The state, and the observations of all worlds, as for `reset`.
        """
        state, seen = self.compiled.restart(state, worlds, key)
        return state, self._seen(state, seen)

    def _restart(
        self, beginning: Beginning, state: SimData, worlds: Array, key: Array
    ) -> tuple[SimData, Array]:
        state = beginning.chosen(worlds, self._reset(beginning, key), state)
        return state, state.plugins[OBSERVATION]

    def step(self, state: SimData, action: Array) -> tuple[SimData, Timestep]:
        """Apply actions until the next ones are due.

        Args:
            state: The state.
            action: (num_envs, 4), or (num_envs, n_drones, 4); clipped to -1 to 1.

        Returns:
            The next state, and the results.

        Raises:
            ValueError: The shape of the actions is wrong.
        """
        n_worlds, n_drones = self.num_envs, self.config.n_drones
        expected = (n_worlds, SIZE) if n_drones == 1 else (n_worlds, n_drones, SIZE)
        if jnp.shape(action) != expected:
            raise ValueError(f"action must have shape {expected}, got {jnp.shape(action)}")
        given = jnp.asarray(action, state.states.pos.dtype).reshape(n_worlds, n_drones, SIZE)
        given = jnp.clip(given, -1, 1)  # as policies remember it
        state = state.replace(plugins=state.plugins | {ACTION: given})
        state = self.compiled.step(state, self.config.ticks)
        found = state.plugins
        observation = self._seen(state, found[OBSERVATION])
        reward = self._without_drones(found[REWARD])[..., 0]
        ended, late, success = (found[x][:, 0, 0] for x in (TERMINATED, TRUNCATED, SUCCESS))
        final = observation
        if FINAL in found:
            final = self._final(state, observation, ended | late)
        terms = dict[str, Array]()
        if TERMS in found:
            each = jnp.moveaxis(self._without_drones(found[TERMS]), -1, 0)
            terms = dict(zip(self.episodes.names, each))
        private = self._without_drones(found[PRIVILEGED]) if PRIVILEGED in found else None
        over = found[OVER][..., 0] if OVER in found else None
        step = Timestep(observation, reward, ended, late, success, final, terms, private, over)
        return state, step

    def ended(self, state: SimData, worlds: Array) -> SimData:
        """End the episodes of some worlds, which begin new ones in the next step.

        Args:
            state: The state.
            worlds: (num_envs,) bool.

        Raises:
            ValueError: Worlds do not begin a new episode in the next step, see `Autoreset`.
        """
        if self.config.autoreset != Autoreset.next_step:
            mode = f"autoreset={self.config.autoreset}"
            raise ValueError(f"ending episodes needs autoreset=next_step, this has {mode}")
        flags = state.plugins[ENDED] | worlds[:, None, None]
        return state.replace(plugins=state.plugins | {ENDED: flags})

    def before_episodes(self, key: Array) -> SimData:
        """Return a state whose next step ignores its action and begins an episode in each world.

        Unlike `reset`, this compiles nothing.

        Args:
            key: As in `reset`.

        Raises:
            ValueError: As for `ended`.
        """
        state = self.compiled.beginning.with_keys(key)
        return self.ended(state, jnp.ones(self.num_envs, bool))

    @property
    def compiled(self) -> _Compiled:
        """The compiled parts of `reset` and `step`, for the current pipelines of `sim`.

        Raises:
            ValueError: Other processes have devices of the mesh.
        """
        sim, known = self.sim, self._compiled
        if not sim.default_data.core.steps.is_fully_addressable:
            raise ValueError(
                "mesh: an environment whose worlds several processes share can be trained, but not "
                "reset or stepped; use of_device() within jax.shard_map"
            )
        if (
            known is None
            or sim.step_pipeline is not known.pipelines[0]
            or sim.reset_pipeline is not known.pipelines[1]
        ):
            known = self._compiled = _Compiled(self)
        return known

    def _seen(self, state: SimData, motion: Array) -> Seen:
        """Return observations: (N, M, size) numbers, with pictures if there are eyes."""
        motion = self._without_drones(motion)
        if self.eyes is None:
            return motion
        picture = self._without_drones(self.eyes(state))
        return {"motion": motion, self.eyes.eye.kind: picture}

    def _final(self, state: SimData, observation: Seen, ends: Array) -> Seen:
        """Return the observations before resets in the same step."""
        motion = self._without_drones(state.plugins[FINAL])
        if self.eyes is None or not isinstance(observation, dict):
            return motion
        kind = self.eyes.eye.kind
        take = partial(self.eyes.final, state)
        picture = jax.lax.cond(
            ends.any(), lambda _: self._without_drones(take()), lambda now: now, observation[kind]
        )
        return {"motion": motion, kind: picture}

    def _without_drones(self, array: Array) -> Array:
        return array[:, 0] if self.config.n_drones == 1 else array

    def motion(self, data: SimData) -> Motion:
        """Return the motion of the drones and of their goals, arrays (num_envs, n_drones, k)."""
        return self.episodes.motion(data)


class _Compiled:
    """Compiled functions of an environment.

    Attributes:
        pipelines: Pipelines of the simulation for which they were compiled.
        reset: `Environment.reset`.
        restart: `Environment.restart`.
        step: A step with the actions in the data.
        outputs: Plugins that hold the results of a step.
        program: The same on packed data, see `Sim.run`.
        restarting: `restart` on packed data.
    """

    def __init__(self, env: Environment) -> None:
        sim = env.sim
        self.pipelines = (sim.step_pipeline, sim.reset_pipeline)
        default, tick = sim.default_data, tick_of(sim.step_pipeline)
        self.beginning = Beginning(env.task, sim.reset_pipeline, default, sim.owned(default))
        ticked = changed_leaves(traced(tick, self.beginning.default))
        changed = [a or b for a, b in zip(ticked, self.beginning.moved)]
        last = partial(env.episodes.finish, self.beginning, changed)
        self.reset = jax.jit(partial(env._reset, self.beginning))
        restart = partial(env._restart, self.beginning)
        self.restart, self.restarting = jax.jit(restart), Composed(restart)
        self.step = sim.build_step_fn(last=last)
        results = (OBSERVATION, REWARD, TERMINATED, TRUNCATED, SUCCESS, FINAL, TERMS, OVER)
        self.outputs = tuple(name for name in results if name in default.plugins)
        self.program = Stepping(tick, last, inputs=(ACTION,), outputs=self.outputs)
