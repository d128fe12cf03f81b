"""The beginning of an episode: default data, the start of the task, the stages of the reset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.envs.tasks import Start, Task
from crazyflow_ros.sim import SimData
from crazyflow_ros.sim.hanging import hang_payload, payload_of
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.xla.kernels import where_needed

KEY, ORIGIN = "episode_key", "episode_origin"
"""Plugins: the random key of each world, (N, 1, 2), and the `origin` of the task, (N, M, k)."""


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
        self._task, self._stages = task, stages
        n_worlds, leaves = default.core.n_worlds, jax.tree.leaves(default)
        with jax.ensure_compile_time_eval():  # the caller may be within a transformation
            first = [x[:1] if own else x for x, own in zip(leaves, owned)]
        core = default.core.replace(n_worlds=1)
        self._treedef = jax.tree.structure(default.replace(core=core))
        # Stages may give parameters an axis of worlds.
        shapes = jax.tree.leaves(jax.eval_shape(self._begun, self._data(first)))
        self._owned = [own or x.shape != new.shape for own, x, new in zip(owned, first, shapes)]
        self._first = [
            np.broadcast_to(x, new.shape) if own else x
            for x, new, own in zip(first, shapes, self._owned)
        ]
        flags = changed_leaves(traced(self._begun, self._data(self._first)))
        self.drawn = [i for i, flag in enumerate(flags) if flag]
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
        start = Start(*self._task.begin(subkey, core.n_drones))
        changes = {name: x[None] for name, x in start.motion.items()}
        data = data.replace(
            states=data.states.replace(**changes),
            plugins=data.plugins | {ORIGIN: start.origin[None]},
            core=core.replace(rng_key=key),
        )
        for stage in self._stages:
            data = stage(data, default, None)
        if data.payload is not None:
            data = hang_payload(data)
            if start.load_vel is not None:
                hanging = payload_of(data).replace(vel=start.load_vel[None, None])
                data = data.replace(payload=hanging)
        following = jax.random.key_data(data.core.rng_key)[None, None]
        return data.replace(
            plugins=data.plugins | {KEY: following},
            core=data.core.replace(rng_key=core.rng_key),
        )

    def drawn_for(self, keys: Array) -> list[Array]:
        """Return the leaves `drawn` of worlds with these keys, (N, 1, 2)."""

        def of_world(key: Array) -> list[Array]:
            data = self._data(self._first)
            begun = self._begun(data.replace(plugins=data.plugins | {KEY: key[None]}))
            leaves = jax.tree.leaves(begun)
            return [leaves[i][0] for i in self.drawn]

        return jax.vmap(of_world)(keys)

    def with_keys(self, key: Array) -> SimData:
        """Return the default data of all worlds, each with its own random key."""
        each = key if key.ndim else jax.random.split(key, self.default.core.n_worlds)
        keys = jax.random.key_data(each)[:, None]
        return self.default.replace(plugins=self.default.plugins | {KEY: keys})

    def all(self, key: Array) -> SimData:
        """Return the data of all worlds at the beginning of episodes."""
        data = self.with_keys(key)
        leaves, treedef = jax.tree.flatten(data)
        for i, x in zip(self.drawn, self.drawn_for(data.plugins[KEY])):
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
        now = [leaves[i] for i in self.drawn]
        drawn = where_needed(lambda now: self.drawn_for(now[key]), ended, now)
        new = dict(zip(self.drawn, drawn))
        for i, (own, flag) in enumerate(zip(self._owned, changed)):
            if own and (flag or i in new):
                worlds = ended.reshape(-1, *[1] * (leaves[i].ndim - 1))
                leaves[i] = jnp.where(worlds, new.get(i, self._first[i]), leaves[i])
        return jax.tree.unflatten(treedef, leaves)
