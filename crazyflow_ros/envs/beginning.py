"""The beginning of an episode: default data, the start of the task, the stages of the reset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.task import Start, Task
from crazyflow_ros.envs.terms import EventTerm, RewardTerm, Terms
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.hanging import hang_payload, payload_of
from crazyflow_ros.sim.leaves import changed_leaves, read_leaves, traced
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.reset import run_reset_stage
from crazyflow_ros.xla.kernels import where_needed

KEY, ORIGIN, LEVEL, DUE = "episode_key", "episode_origin", "episode_level", "event_due"
"""Plugins: the random key of each world, (N, 1, 2); the `origin` of the task, (N, M, k); the levels
of its curricula, and the ticks of its next events, (N, 1, k)."""


def terms_of(task: Task) -> Terms:
    """Return the terms of a task; none but its reward for one that has no terms."""
    terms = getattr(task, "terms", None)
    return terms if isinstance(terms, Terms) else Terms(rewards={"reward": RewardTerm(_none)})


def _none(_: object) -> Array:
    raise AssertionError("such a task judges by itself")


class Beginning:
    """Draws the beginnings of episodes.

    Each world draws from its own key, so that its episodes do not depend on other worlds.

    Attributes:
        default: Data of all worlds, in the shapes after a reset.
    """

    def __init__(
        self, task: Task, stages: Sequence[ResetStage], default: SimData, owned: list[bool]
    ) -> None:
        """Find out what differs between episodes.

        Args:
            task: Gives start and goal.
            stages: Stages of the reset pipeline.
            default: Default data; all worlds begin like the first one.
            owned: For each leaf, whether its first axis is that of the worlds.
        """
        self._task, self._stages, self._terms = task, stages, terms_of(task)
        events = self._terms.events.values()
        self._events = [event for event in events if event.seconds is not None]
        n_worlds, leaves = default.core.n_worlds, jax.tree.leaves(default)
        with jax.ensure_compile_time_eval():  # the caller may be within a transformation
            first = [x[:1] if own else x for x, own in zip(leaves, owned)]
        core = default.core.replace(n_worlds=1)
        self._treedef = jax.tree.structure(default.replace(core=core))

        # Stages may give parameters an axis of worlds.
        def all_happens(data: SimData) -> SimData:
            data = self._begun(data)
            for i in range(len(self._events)):
                data = self._happened(i, data, data)
            return data

        shapes = jax.tree.leaves(jax.eval_shape(all_happens, self._data(first)))
        self._owned = [own or x.shape != new.shape for own, x, new in zip(owned, first, shapes)]
        self._first = [
            np.broadcast_to(x, new.shape) if own else x
            for x, new, own in zip(first, shapes, self._owned)
        ]
        flags = changed_leaves(traced(self._begun, self._data(self._first)))
        self.drawn = [i for i, flag in enumerate(flags) if flag]
        self.moved, self._used = [False] * len(flags), list[list[int]]()
        for i in range(len(self._events)):
            happens = partial(self._happened, i, self._data(self._first))
            jaxpr = traced(happens, self._data(self._first))
            read, moved = read_leaves(jaxpr), changed_leaves(jaxpr)
            self.moved = [a or b for a, b in zip(self.moved, moved)]
            each = zip(self._owned, read, moved)
            self._used.append([k for k, (own, a, b) in enumerate(each) if own and (a or b)])
        with jax.ensure_compile_time_eval():
            whole = [
                jnp.broadcast_to(x, (n_worlds, *x.shape[1:])) if own else x
                for x, own in zip(self._first, self._owned)
            ]
        self.default: SimData = jax.tree.unflatten(jax.tree.structure(default), whole)

    def _data(self, leaves: Sequence[Any]) -> SimData:
        return jax.tree.unflatten(self._treedef, leaves)

    def _begun(self, data: SimData) -> SimData:
        """Return the data of a world at the beginning of an episode that is drawn from its key."""
        default, core = data, data.core
        key, subkey = jax.random.split(jax.random.wrap_key_data(data.plugins[KEY][0, 0]))
        level = data.plugins[LEVEL][0, 0] if LEVEL in data.plugins else None
        start = Start(*self._task.begin(subkey, core.n_drones, *self._terms.leveled(level)))
        changes = {name: x[None] for name, x in start.motion.items()}
        data = data.replace(
            states=data.states.replace(**changes),
            plugins=data.plugins | {ORIGIN: start.origin[None]},
            core=core.replace(rng_key=key),
        )
        for stage in self._stages:
            data = _after(stage, data, default)
        if data.payload is not None:
            data = hang_payload(data)
            if start.load_vel is not None:
                hanging = payload_of(data).replace(vel=start.load_vel[None, None])
                data = data.replace(payload=hanging)
        if self._events:
            keys = jax.random.split(data.core.rng_key, len(self._events) + 1)
            due = [self._due(key, event, data) for key, event in zip(keys, self._events)]
            plugins = data.plugins | {DUE: jnp.stack(due, axis=-1)[:, None]}
            data = data.replace(plugins=plugins, core=data.core.replace(rng_key=keys[-1]))
        return _kept_key(data, core.rng_key)

    def _due(self, key: Array, event: EventTerm, data: SimData) -> Array:
        """Return the tick of the next such event, (1,), after one at the ticks of the data."""
        assert event.seconds is not None
        low, high = (x * data.core.freq for x in event.seconds)
        ticks = jax.random.uniform(key, (1,), minval=low, maxval=high)
        return data.core.steps[:, 0] + jnp.ceil(ticks).astype(data.core.steps.dtype)

    def _happened(self, i: int, default: SimData, data: SimData) -> SimData:
        """Return the data of a world after an event."""
        event, outer = self._events[i], data.core.rng_key
        key, subkey = jax.random.split(jax.random.wrap_key_data(data.plugins[KEY][0, 0]))
        mine = np.arange(len(self._events)) == i
        due = jnp.where(mine, self._due(subkey, event, data), data.plugins[DUE])
        data = data.replace(plugins=data.plugins | {DUE: due}, core=data.core.replace(rng_key=key))
        return _kept_key(_after(event.stage, data, default), outer)

    def _struck(self, i: int, old: list[Array]) -> list[Array]:
        """Return the leaves `_used` by an event after it, in n worlds."""

        def of_world(own: list[Array]) -> list[Array]:
            leaves = list(self._first)
            for k, x in zip(self._used[i], own):
                leaves[k] = x[None]
            happened = self._happened(i, self._data(self._first), self._data(leaves))
            return [jax.tree.leaves(happened)[k][0] for k in self._used[i]]

        return jax.vmap(of_world)(old)

    def struck(self, data: SimData) -> SimData:
        """Return data of n worlds in which the events that are due have happened."""
        for i, used in enumerate(self._used):
            leaves, treedef = jax.tree.flatten(data)
            due = data.plugins[DUE][:, 0, i] <= data.core.steps[:, 0]
            old = [leaves[k] for k in used]
            for k, x in zip(used, where_needed(partial(self._struck, i), due, old)):
                worlds = due.reshape(-1, *[1] * (x.ndim - 1))
                leaves[k] = jnp.where(worlds, x, leaves[k])
            data = jax.tree.unflatten(treedef, leaves)
        return data

    def drawn_for(self, given: dict[str, Array]) -> list[Array]:
        """Return the leaves `drawn` of worlds with these keys and levels, (N, 1, k)."""

        def of_world(given: dict[str, Array]) -> list[Array]:
            data = self._data(self._first)
            own = {name: x[None] for name, x in given.items()}
            begun = self._begun(data.replace(plugins=data.plugins | own))
            leaves = jax.tree.leaves(begun)
            return [leaves[i][0] for i in self.drawn]

        return jax.vmap(of_world)(given)

    def with_keys(self, key: Array) -> SimData:
        """Return the default data of all worlds, each with its own random key."""
        if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            key = jax.random.wrap_key_data(key)  # of `jax.random.PRNGKey`, as Brax has them
        each = key if key.ndim else jax.random.split(key, self.default.core.n_worlds)
        keys = jax.random.key_data(each)[:, None]
        return self.default.replace(plugins=self.default.plugins | {KEY: keys})

    def all(self, key: Array) -> SimData:
        """Return the data of all worlds at the beginning of episodes."""
        data = self.with_keys(key)
        leaves, treedef = jax.tree.flatten(data)
        given = {name: data.plugins[name] for name in (KEY, LEVEL) if name in data.plugins}
        for i, x in zip(self.drawn, self.drawn_for(given)):
            leaves[i] = x
        return jax.tree.unflatten(treedef, leaves)

    def chosen(self, worlds: Array, new: SimData, data: SimData) -> SimData:
        """Return data in which some worlds, (N,) bool, are replaced with those of `new`."""
        leaves, treedef = jax.tree.flatten(data)
        for i, (own, x) in enumerate(zip(self._owned, jax.tree.leaves(new))):
            if own:
                leaves[i] = jnp.where(worlds.reshape(-1, *[1] * (x.ndim - 1)), x, leaves[i])
        return jax.tree.unflatten(treedef, leaves)

    def where(self, ended: Array, data: SimData, changed: Sequence[bool]) -> SimData:
        """Return data in which some worlds begin an episode.

        Args:
            ended: (n,) bool, the worlds that begin one.
            data: Data of n worlds.
            changed: For each leaf, whether it may differ from the default data.
        """
        leaves, treedef = jax.tree.flatten(data)
        key = next(k for k, i in enumerate(self.drawn) if leaves[i] is data.plugins[KEY])
        given = {LEVEL: data.plugins[LEVEL]} if LEVEL in data.plugins else {}

        def draw(tree: tuple[list[Array], Any]) -> tuple[list[Array], Any]:
            now, given = tree
            return self.drawn_for({KEY: now[key], **given}), given

        now = [leaves[i] for i in self.drawn]
        drawn, _ = where_needed(draw, ended, (now, given))
        new = dict(zip(self.drawn, drawn))
        for i, (own, flag) in enumerate(zip(self._owned, changed)):
            if own and (flag or i in new):
                worlds = ended.reshape(-1, *[1] * (leaves[i].ndim - 1))
                leaves[i] = jnp.where(worlds, new.get(i, self._first[i]), leaves[i])
        return jax.tree.unflatten(treedef, leaves)


def _after(stage: ResetStage, data: SimData, default: SimData) -> SimData:
    """Return the data of a world after a stage of a reset."""
    return run_reset_stage(stage, data, default, jnp.ones(1, bool))


def _kept_key(data: SimData, outer: Array) -> SimData:
    """Return the data of a world whose random key, not that of all worlds, has been used."""
    following = jax.random.key_data(data.core.rng_key)[None, None]
    return data.replace(
        plugins=data.plugins | {KEY: following}, core=data.core.replace(rng_key=outer)
    )
