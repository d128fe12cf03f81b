"""What happens to episodes around the ticks of a step: actions, verdicts, events, observations."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.beginning import DUE, KEY, LEVEL, ORIGIN, Beginning, terms_of
from crazyflow_ros.envs.environment_options import Autoreset, Configuration, Ending
from crazyflow_ros.envs.eyes import MOUNT, SEEN
from crazyflow_ros.envs.task import CourseTask, Flight, Task, Verdict
from crazyflow_ros.policy.action import SIZE
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.sim import Sim, SimData, functional
from crazyflow_ros.sim.hanging import load_motion
from crazyflow_ros.sim.leaves import inputs_read, path_name
from crazyflow_ros.sim.randomization import DELAY, NOISE, RandomNoise

ACTION, EARLIER, ENDED = "action", "earlier_actions", "episode_ended"
OBSERVATION, FINAL, PRIVILEGED = "observation", "final_observation", "privileged"
REWARD, TERMINATED, TRUNCATED, SUCCESS = "reward", "terminated", "truncated", "success"
TERMS, OVER, PAST = "terms", "drone_over", "earlier_terms"
"""Plugins of `SimData`. With `ending="alone"`, OVER is 1 for a drone that has failed, and 2 for one
that has completed its task, (N, M, 1)."""


class Episodes:
    """The episodes of an environment, as pure functions on its data.

    Attributes:
        names: Names of the task's terms, in the order of the plugin TERMS.
        told: A name for each number that observation terms tell policies.
        plugins: The state of the episodes at first: views, which take no memory.
    """

    def __init__(
        self, task: Task, config: Configuration, sim: Sim, max_steps: int, *, moves: bool
    ) -> None:
        """Find out what the episodes have to remember.

        Args:
            task: The task.
            config: The options.
            sim: The worlds.
            max_steps: Steps after which an episode is truncated.
            moves: Whether cameras differ between episodes.

        Raises:
            ValueError: A term has a wrong shape.
        """
        self.task, self.config, self._max_steps = task, config, max_steps
        self._terms, self._stacked = terms_of(task), config.observations.stacked
        self._action = config.actions
        self._frame, self._noise = config.observations.frame, config.frame_noise
        self._history, self.names = config.history, tuple[str, ...]()
        self._older = max(-(-config.delay // config.ticks), 1)  # actions before the present one
        n, m, dtype = sim.n_worlds, sim.n_drones, sim.data.states.pos.dtype
        key, levels = jax.random.key(0), [c.first for c in self._terms.curricula.values()]
        start = jax.eval_shape(
            lambda: task.begin(key, m, *self._terms.leveled(jnp.zeros(len(levels))))
        )

        def full(shape: tuple[int, ...], dtype: Any, value: Any = 0) -> np.ndarray:
            return np.broadcast_to(np.asarray(value, dtype), (n, *shape))

        plugins = {
            KEY: full((1, 2), np.uint32),
            ORIGIN: full(start[1].shape, dtype),
            ACTION: full((m, SIZE), dtype),
            EARLIER: full((m, SIZE * self._older), dtype),
        }
        if levels:
            plugins[LEVEL] = full((1, len(levels)), dtype, levels)
        if moves:
            plugins[MOUNT] = full((m, 6), dtype)
        if config.ending == Ending.alone:
            plugins[OVER] = full((m, 1), np.int32)
        if config.draws_delays:
            plugins[DELAY] = full((m, 1), np.int32, config.delay)
        if timed := [event for event in self._terms.events.values() if event.seconds]:
            plugins[DUE] = full((1, len(timed)), sim.data.core.steps.dtype)
        results = self._results(sim.data.replace(plugins=plugins), full)
        if not self._older:
            del plugins[EARLIER]
        self.plugins = plugins | results
        seen = sum(self._sizes_told(policy=True)) + config.observations.motion_size
        flag, scene = full((1, 1), bool), sim.data.states
        self.plugins |= {
            ENDED: flag,
            OBSERVATION: full((m, seen), dtype),
            REWARD: full((m, 1), dtype),
            **dict.fromkeys((TERMINATED, TRUNCATED, SUCCESS), flag),
        }
        if config.autoreset == Autoreset.same_step:
            self.plugins[FINAL] = full((m, seen), dtype)
            if config.eye is not None:
                kept = {"pos": scene.pos, "quat": scene.quat} | plugins
                self.plugins |= {
                    f"final_{x}": full(kept[x].shape[1:], kept[x].dtype) for x in SEEN if x in kept
                }

    def _results(self, data: SimData, full: Any) -> dict[str, np.ndarray]:
        """Return the plugins for what the task computes; forget earlier actions it ignores."""

        def found(data: SimData) -> tuple[Verdict, list[Array]]:
            flight = self._flight(data)
            verdict = Verdict(*self.task.judge(flight, flight))
            self.names = tuple(verdict.terms)
            return verdict, [term.func(flight) for _, term in self._told]

        self._told = [*self._terms.observations.items(), *self._terms.privileged.items()]
        jaxpr, (verdict, told) = jax.make_jaxpr(found, return_shape=True)(data)
        n, (m, dtype) = data.states.pos[..., 0].size, (data.core.n_drones, data.states.pos.dtype)
        for name, x in verdict.terms.items():
            if x.shape != (n,):
                raise ValueError(f"{name} of the task must have shape {(n,)}, got {x.shape}")
        for (name, _), x in zip(self._told, told):
            if x.shape[:1] != (n,) or len(x.shape) != 2:
                raise ValueError(f"observation {name} must have shape {(n, 'k')}, got {x.shape}")
        self._sizes = [x.shape[1] for x in told]
        own = [np.full(n, term.noise) for n, (_, term) in zip(self._sizes, self._told)]
        self._deviation = np.concatenate([self._noise, *own])
        paths = [path_name(path) for path, _ in jax.tree.leaves_with_path(data)]
        read = {path for path, flag in zip(paths, inputs_read(jaxpr.jaxpr)) if flag}
        results = {}
        if f"plugins.{EARLIER}" not in read and not self.config.delay:
            self._older = 0
        if self.names:
            results[TERMS] = full((m, len(self.names)), dtype)
        if private := sum(self._sizes_told(policy=False)):
            results[PRIVILEGED] = full((m, private), dtype)
        draws = any(isinstance(x, RandomNoise) for x in self.config.randomizers)
        if draws and self._deviation.any():
            results[NOISE] = full((m, 1), dtype, 1)
        if kept := sum(size * term.kept for size, (_, term) in zip(self._sizes, self._told)):
            results[PAST] = full((m, kept), dtype)
        return results

    def _sizes_told(self, *, policy: bool) -> list[int]:
        """Return the numbers of the terms that tell policies, or critics alone."""
        sizes = [size * term.history for size, (_, term) in zip(self._sizes, self._told)]
        n = len(self._terms.observations)
        return sizes[:n] if policy else sizes[n:]

    @property
    def told(self) -> tuple[str, ...]:
        """See the class."""
        sizes = self._sizes_told(policy=True)
        return tuple(f"{name}[{i}]" for (name, _), n in zip(self._told, sizes) for i in range(n))

    def apply_action(self, data: SimData) -> SimData:
        """Stage that turns the action in force into a command."""
        action, delay, n = data.plugins[ACTION], self.config.delay, self.config.ticks
        if delay:
            earlier = jnp.split(data.plugins[EARLIER], self._older, axis=-1)
            newest = 0 if DELAY in data.plugins else self._older - 1
            action, *earlier = [action, *earlier][newest:]
            # Until an action is `delay` ticks old, the one before it is in force.
            late = data.plugins.get(DELAY, delay) - (data.core.steps % n)[..., None]
            for i, other in enumerate(earlier, newest):
                action = jnp.where(late > i * n, other, action)
        if OVER in data.plugins:
            action = jnp.where(data.plugins[OVER] > 0, 0.0, action)
        return getattr(functional, f"{self._action.control}_control")(data, self._action(action))

    def motion(self, data: SimData) -> Motion:
        """Return the motion of the drones and of their goals, arrays (num_envs, n_drones, k)."""
        states, origin = data.states, data.plugins[ORIGIN]
        lead = states.pos.shape[:2]
        flat, origins = self._time(data), origin.reshape(-1, origin.shape[-1])
        (goal, vel), (_, acc) = jax.jvp(
            partial(self.task.goal, origins), (flat,), (jnp.ones_like(flat),)
        )
        motion = (states.pos, states.quat, states.vel, states.ang_vel, states.rotor_vel)
        goals = (goal.reshape(*lead, 3), vel.reshape(*lead, 3), acc.reshape(*lead, 3))
        return Motion(*motion, *goals, data.plugins[ACTION], **load_motion(data))

    def _time(self, data: SimData) -> Array:
        lead = data.states.pos.shape[:2]
        seconds = (data.core.steps / self.config.freq)[:, None]
        return jnp.broadcast_to(seconds, (*lead, 1)).reshape(-1, 1)

    def _flight(self, data: SimData, motion: Motion | None = None) -> Flight:
        """Return what a task sees of the drones; `motion` is that of the data by default."""
        motion, plugins = motion or self.motion(data), data.plugins

        def flat(x: Any) -> Any:
            return None if x is None else x.reshape(-1, x.shape[-1])

        last = jnp.zeros_like(motion.action)
        if EARLIER in plugins:
            last = plugins[EARLIER][..., :SIZE]
        levels = dict[str, Array]()
        if LEVEL in plugins:
            shape = (*motion.pos.shape[:2], plugins[LEVEL].shape[-1])
            each = jnp.broadcast_to(plugins[LEVEL], shape).reshape(-1, shape[-1])
            levels = dict(zip(self._terms.curricula, each.T))
        over = plugins[OVER].reshape(-1) > 0 if OVER in plugins else None
        return Flight(
            pos=flat(motion.pos),
            vel=flat(motion.vel),
            error=flat(motion.goal - motion.pos),
            vel_error=flat(motion.goal_vel - motion.vel),
            origin=flat(plugins[ORIGIN]),
            quat=flat(motion.quat),
            ang_vel=flat(motion.ang_vel),
            rotor_vel=flat(motion.rotor_vel),
            action=flat(motion.action),
            last_action=flat(last),
            time=self._time(data),
            data=data,
            load=flat(motion.load),
            load_vel=flat(motion.load_vel),
            level=levels,
            over=over,
        )

    def observed(
        self, data: SimData, before: SimData | None, begins: Array
    ) -> tuple[Array, SimData]:
        """Return observations, and data with what is to be remembered, whose keys have been used.

        Args:
            data: Data of n worlds.
            before: Data before the step, if there was one.
            begins: (n,) bool, the worlds at the beginning of an episode.
        """
        motion, new = self.motion(data), begins[:, None, None]
        motion = motion._replace(action=jnp.where(new, 0.0, motion.action))
        frame, told = self._frame(motion), list[Array]()
        if self._told:
            flight, lead = self._flight(data, motion), frame.shape[:2]
            last = jnp.where(new, 0.0, flight.last_action.reshape(*lead, SIZE))
            flight = flight._replace(last_action=last.reshape(-1, SIZE))
            told = [
                (term.scale * term.func(flight)).reshape(*lead, -1).astype(frame.dtype)
                for _, term in self._told
            ]
        deviation = self._deviation
        if deviation.any():
            pairs = jax.vmap(jax.random.split)(jax.random.wrap_key_data(data.plugins[KEY][:, 0]))
            keys, subkeys = pairs[:, 0], pairs[:, 1]
            shape = (frame.shape[1], len(deviation))
            noise: Any = jax.vmap(lambda key: jax.random.normal(key, shape, frame.dtype))
            error = noise(subkeys) * jnp.asarray(deviation, frame.dtype)
            if NOISE in data.plugins:
                error *= data.plugins[NOISE]
            sizes = np.cumsum([len(self._noise), *self._sizes])[: len(told)].tolist()
            own, *others = jnp.split(error, sizes, axis=-1)
            frame, told = frame + own, [x + y for x, y in zip(told, others)]
            key = jax.random.key_data(keys)[:, None]
            data = data.replace(plugins=data.plugins | {KEY: key})
        earlier = None
        if before is not None and self._history > 1:
            earlier = jnp.where(new, 0.0, before.plugins[OBSERVATION])
        frames = self._stacked(frame, earlier)
        if not told:
            return frames, data
        past = None if before is None else before.plugins.get(PAST)
        told, data = self._late(data, told, past, new)
        n = len(self._terms.observations)
        if PRIVILEGED in self.plugins:
            private = jnp.concatenate(told[n:], axis=-1)
            data = data.replace(plugins=data.plugins | {PRIVILEGED: private})
        return jnp.concatenate([frames, *told[:n]], axis=-1), data

    def _late(
        self, data: SimData, told: list[Array], past: Array | None, new: Array
    ) -> tuple[list[Array], SimData]:
        """Return the delayed and stacked values of the terms, and data with those to be kept."""
        stacks, kept, start = list[Array](), list[Array](), 0
        for x, (_, term) in zip(told, self._told):
            size, n = x.shape[-1], x.shape[-1] * term.kept
            before = jnp.tile(x, term.kept) if term.kept else x[..., :0]
            if past is not None and n:
                before = jnp.where(new, before, past[..., start : start + n])
            start += n
            values = jnp.concatenate([x, before], axis=-1)
            stacks.append(values[..., size * term.delay : size * (term.delay + term.history)])
            kept.append(values[..., :n])
        if PAST in self.plugins:
            plugins = data.plugins | {PAST: jnp.concatenate(kept, axis=-1)}
            data = data.replace(plugins=plugins)
        return stacks, data

    def _judged(self, before: SimData, after: SimData) -> tuple[SimData, dict[str, Array], Array]:
        """Return the verdict on a step of n worlds.

        Returns:
            Data with the next goals; results of the step, of which ends and success are (n,); the
            share of each world's drones that are successful, (n,).
        """
        flights = self._flight(before), self._flight(after)
        last = flights[1].last_action  # `before` has the action of this step already
        flights = flights[0]._replace(action=last, last_action=last), flights[1]
        verdict = Verdict(*self.task.judge(*flights))
        lead = after.states.pos.shape[:2]
        reward, terminated, success = (
            x.reshape(lead) for x in (verdict.reward, verdict.terminated, verdict.success)
        )
        plugins = dict[str, Array]()
        if isinstance(self.task, CourseTask):
            origin = after.plugins[ORIGIN]
            plugins[ORIGIN] = self.task.advance(*flights).reshape(origin.shape)
        values = [verdict.terms[name].reshape(*lead, 1) for name in self.names]
        late = after.core.steps[:, 0] >= self._max_steps * self.config.ticks
        if verdict.truncated is not None:
            late |= verdict.truncated.reshape(lead).any(axis=1)
        results = {TRUNCATED: late}
        if OVER in after.plugins:
            code = after.plugins[OVER][..., 0]
            now = jnp.where(terminated, 1 + success.astype(code.dtype), 0)
            was, code = code > 0, jnp.where(code > 0, code, now)
            reward = jnp.where(was, 0, reward)
            values = [jnp.where(was[..., None], 0, x) for x in values]
            plugins[OVER] = code[..., None]
            success = jnp.where(code > 0, code == 2, success)
            results |= {TERMINATED: (code > 0).all(axis=1), SUCCESS: success.all(axis=1)}
        else:
            done, failed = success.all(axis=1), (terminated & ~success).any(axis=1)
            ends = failed | (done & terminated.any(axis=1))
            results |= {TERMINATED: ends, SUCCESS: done}
        results[REWARD] = reward[..., None]
        if values:
            results[TERMS] = jnp.concatenate([x.astype(reward.dtype) for x in values], axis=-1)
        after = after.replace(plugins=after.plugins | plugins)
        return after, results, success.mean(axis=1, dtype=reward.dtype)

    def finish(
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
        after, results, share = self._judged(before, after)
        flags = {name: results.pop(name) & ~ended for name in (TERMINATED, TRUNCATED, SUCCESS)}
        plugins = {name: flag[:, None, None] for name, flag in flags.items()}
        plugins |= {name: jnp.where(ended[:, None, None], 0.0, x) for name, x in results.items()}
        ends, begins = flags[TERMINATED] | flags[TRUNCATED], jnp.zeros_like(ended)
        if LEVEL in after.plugins:
            level = after.plugins[LEVEL][:, 0]
            new = [c.func(x, share) for c, x in zip(self._terms.curricula.values(), level.T)]
            level = jnp.where(ends[:, None], jnp.stack(new, axis=-1), level)
            after = after.replace(plugins=after.plugins | {LEVEL: level[:, None]})
        match self.config.autoreset:
            case Autoreset.next_step:
                plugins[ENDED], begins = ends[:, None, None], ended
            case Autoreset.same_step:
                plugins[FINAL], after = self.observed(after, before, begins)
                kept = {"pos": after.states.pos, "quat": after.states.quat} | after.plugins
                plugins |= {f"final_{x}": kept[x] for x in SEEN if f"final_{x}" in after.plugins}
                begins = ends
        after = beginning.struck(beginning.where(begins, after, changed))
        plugins[OBSERVATION], after = self.observed(after, before, begins)
        new_episode = begins[:, None, None]
        if self._older:
            past = jnp.concatenate([after.plugins[ACTION], after.plugins[EARLIER]], axis=-1)
            plugins[EARLIER] = jnp.where(new_episode, 0.0, past[..., : SIZE * self._older])
        if OVER in after.plugins:
            plugins[OVER] = jnp.where(new_episode, 0, after.plugins[OVER])
        return after.replace(plugins=after.plugins | plugins)
