"""Environments as pure functions."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from crazyflow_ros.drones import check_quadrotor
from crazyflow_ros.envs.beginning import KEY, ORIGIN, Beginning
from crazyflow_ros.envs.environment_options import Autoreset, Configuration
from crazyflow_ros.envs.eyes import MOUNT, Eyes
from crazyflow_ros.envs.tasks import CourseTask, Flight, Task, Verdict
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.sim import Sim, SimData, functional
from crazyflow_ros.sim.arguments import whole
from crazyflow_ros.sim.compile.programs import Composed, Stepping
from crazyflow_ros.sim.compile.stepping import tick_of
from crazyflow_ros.sim.hanging import load_motion
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.worlds import inferring, put

ACTION, EARLIER, ENDED = "action", "earlier_actions", "episode_ended"
OBSERVATION, FINAL = "observation", "final_observation"
REWARD, TERMINATED, TRUNCATED, SUCCESS = "reward", "terminated", "truncated", "success"


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
        self._noise = config.frame_noise
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
        self._older = -(-config.delay // config.ticks)  # actions before the present one
        errors = config.eye_errors
        moves = config.eye is not None and bool(errors.shift or errors.turn)
        plugins: dict[str, Any] = self._plugins()
        if moves:
            mounts = (num_envs, config.n_drones, 6)
            plugins[MOUNT] = np.zeros(mounts, self.sim.data.states.pos.dtype)
        if mesh is not None:
            over = NamedSharding(inferring(mesh), PartitionSpec(mesh.axis_names))
            plugins = {name: put(array, over) for name, array in plugins.items()}
        self.sim.data = self.sim.data.replace(plugins=plugins)
        self.sim.build_default_data()
        pipeline = insert_before(self.sim.step_pipeline, "integrate", *config.stages)
        self.sim.step_pipeline = (self._apply_action, *pipeline)
        self.sim.reset_pipeline = tuple(config.randomizers)
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
        seen, state = self._observed(state, None, jnp.ones(self.num_envs, bool))
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
        final = self._without_drones(found[FINAL]) if FINAL in found else observation
        reward = self._without_drones(found[REWARD])[..., 0]
        ended, late, success = (found[x][:, 0, 0] for x in (TERMINATED, TRUNCATED, SUCCESS))
        return state, Timestep(observation, reward, ended, late, success, final)

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

    def _without_drones(self, array: Array) -> Array:
        return array[:, 0] if self.config.n_drones == 1 else array

    def _plugins(self) -> dict[str, np.ndarray]:
        """Return the state of episodes as zeros, which are views and take no memory."""
        config, dtype = self.config, self.sim.data.states.pos.dtype
        n, m = self.num_envs, config.n_drones
        start = jax.eval_shape(lambda: self.task.begin(jax.random.key(0), m))

        def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
            return np.broadcast_to(np.zeros((), dtype), (n, *shape))

        flag, seen = zeros((1, 1), bool), zeros((m, self.observation.motion_size), dtype)
        plugins = {
            KEY: zeros((1, 2), np.uint32),
            ORIGIN: zeros(start[1].shape, dtype),
            ACTION: zeros((m, SIZE), dtype),
            ENDED: flag,
            OBSERVATION: seen,
            REWARD: zeros((m, 1), dtype),
            **dict.fromkeys((TERMINATED, TRUNCATED, SUCCESS), flag),
        }
        if config.autoreset == Autoreset.same_step:
            plugins[FINAL] = seen
        if self._older:
            plugins[EARLIER] = zeros((m, SIZE * self._older), dtype)
        return plugins

    def _apply_action(self, data: SimData) -> SimData:
        """Stage that turns the action in force into a command."""
        action, delay, n = data.plugins[ACTION], self.config.delay, self.config.ticks
        if delay:
            actions = jnp.split(data.plugins[EARLIER], self._older, axis=-1)
            actions = [action, *actions]
            # Until the action of `_older` - 1 steps ago is old enough, the one before it is in
            # force.
            late = (data.core.steps % n < delay - (self._older - 1) * n)[..., None]
            action = jnp.where(late, actions[self._older], actions[self._older - 1])
        setter = getattr(functional, f"{self.action.control}_control")
        return setter(data, self.action(action))

    def motion(self, data: SimData) -> Motion:
        """Return the motion of the drones and of their goals, arrays (num_envs, n_drones, k)."""
        states, origin = data.states, data.plugins[ORIGIN]
        lead = states.pos.shape[:2]
        time = jnp.broadcast_to((data.core.steps / self.config.freq)[:, None], (*lead, 1))
        flat, origins = time.reshape(-1, 1), origin.reshape(-1, origin.shape[-1])
        (goal, vel), (_, acc) = jax.jvp(
            partial(self.task.goal, origins), (flat,), (jnp.ones_like(flat),)
        )
        motion = (states.pos, states.quat, states.vel, states.ang_vel, states.rotor_vel)
        goals = (goal.reshape(*lead, 3), vel.reshape(*lead, 3), acc.reshape(*lead, 3))
        return Motion(*motion, *goals, data.plugins[ACTION], **load_motion(data))

    def _observed(
        self, data: SimData, earlier: Array | None, begins: Array
    ) -> tuple[Array, SimData]:
        """Return observations, and data whose keys have been used.

        Args:
            data: Data of n worlds.
            earlier: (n, M, size) observations of the previous step, if there was one.
            begins: (n,) bool, the worlds at the beginning of an episode.
        """
        motion, new = self.motion(data), begins[:, None, None]
        motion = motion._replace(action=jnp.where(new, 0.0, motion.action))
        frame = self.observation.frame(motion)
        if self._noise.any():
            pairs = jax.vmap(jax.random.split)(jax.random.wrap_key_data(data.plugins[KEY][:, 0]))
            keys, subkeys = pairs[:, 0], pairs[:, 1]
            noise: Any = jax.vmap(lambda key: jax.random.normal(key, frame.shape[1:], frame.dtype))
            frame += noise(subkeys) * jnp.asarray(self._noise, frame.dtype)
            key = jax.random.key_data(keys)[:, None]
            data = data.replace(plugins=data.plugins | {KEY: key})
        if earlier is not None:
            earlier = jnp.where(new, 0.0, earlier)
        return self.observation.stacked(frame, earlier), data

    def _judged(self, before: SimData, after: SimData) -> tuple[SimData, Array, Array, Array]:
        """Return the verdict on a step of n worlds.

        Returns:
            Data with the next goals; rewards (n, M); whether worlds are terminated, and whether
            they are successful, (n,).
        """
        flights = self._flight(before), self._flight(after)
        verdict = Verdict(*self.task.judge(*flights))
        reward, terminated, success = (
            x.reshape(after.states.pos.shape[:2])
            for x in (verdict.reward, verdict.terminated, verdict.success)
        )
        if isinstance(self.task, CourseTask):
            origin = after.plugins[ORIGIN]
            advanced = self.task.advance(*flights).reshape(origin.shape)
            after = after.replace(plugins=after.plugins | {ORIGIN: advanced})
        done, failed = success.all(axis=1), (terminated & ~success).any(axis=1)
        return after, reward, failed | (done & terminated.any(axis=1)), done

    def _flight(self, data: SimData) -> Flight:
        motion, origin = self.motion(data), data.plugins[ORIGIN]
        errors = (motion.goal - motion.pos, motion.goal_vel - motion.vel)
        pos, vel, error, vel_error = (x.reshape(-1, 3) for x in (motion.pos, motion.vel, *errors))
        flight = Flight(pos, vel, error, vel_error, origin.reshape(-1, origin.shape[-1]))
        if motion.load is None or motion.load_vel is None:
            return flight
        load, load_vel = (x.reshape(-1, 3) for x in (motion.load, motion.load_vel))
        return flight._replace(load=load, load_vel=load_vel)

    def _finish(
        self, beginning: Beginning, changed: list[bool], before: SimData, after: SimData
    ) -> SimData:
        """Return data after a step: judged, reset where an episode begins, and observed.

        Args:
            beginning: Begins episodes.
            changed: For each leaf, whether a tick changes it.
            before: Data before the ticks.
            after: Data after them.
        """
        ended = before.plugins[ENDED][:, 0, 0]  # in the previous step
        after, reward, terminated, success = self._judged(before, after)
        late = after.core.steps[:, 0] >= self.max_episode_steps * self.config.ticks
        verdict = {TERMINATED: terminated, TRUNCATED: late, SUCCESS: success}
        flags = {name: flag & ~ended for name, flag in verdict.items()}
        plugins = {name: flag[:, None, None] for name, flag in flags.items()}
        plugins[REWARD] = jnp.where(ended[:, None], 0.0, reward)[..., None]
        ends, begins = flags[TERMINATED] | flags[TRUNCATED], jnp.zeros_like(ended)
        earlier = before.plugins[OBSERVATION] if self.observation.history > 1 else None
        match self.config.autoreset:
            case Autoreset.next_step:
                plugins[ENDED], begins = ends[:, None, None], ended
            case Autoreset.same_step:
                plugins[FINAL], after = self._observed(after, earlier, begins)
                begins = ends
        after = beginning.where(begins, after, changed)
        plugins[OBSERVATION], after = self._observed(after, earlier, begins)
        if self._older:
            past = jnp.concatenate([after.plugins[ACTION], after.plugins[EARLIER]], axis=-1)
            past = past[..., : SIZE * self._older]
            plugins[EARLIER] = jnp.where(begins[:, None, None], 0.0, past)
        return after.replace(plugins=after.plugins | plugins)


class _Compiled:
    """Compiled functions of an environment.

    Attributes:
        pipelines: Pipelines of the simulation for which they were compiled.
        reset: `Environment.reset`.
        restart: `Environment.restart`.
        step: A step with the actions in the data.
        program: The same on packed data, see `Sim.run`.
        restarting: `restart` on packed data.
    """

    def __init__(self, env: Environment) -> None:
        sim = env.sim
        self.pipelines = (sim.step_pipeline, sim.reset_pipeline)
        default, tick = sim.default_data, tick_of(sim.step_pipeline)
        self.beginning = Beginning(env.task, sim.reset_pipeline, default, sim.owned(default))
        changed = changed_leaves(traced(tick, self.beginning.default))
        last = partial(env._finish, self.beginning, changed)
        self.reset = jax.jit(partial(env._reset, self.beginning))
        restart = partial(env._restart, self.beginning)
        self.restart, self.restarting = jax.jit(restart), Composed(restart)
        self.step = sim.build_step_fn(last=last)
        results = (OBSERVATION, REWARD, TERMINATED, TRUNCATED, SUCCESS, FINAL)
        outputs = tuple(name for name in results if name in default.plugins)
        self.program = Stepping(tick, last, inputs=(ACTION,), outputs=outputs)
