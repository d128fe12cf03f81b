"""A pipeline as a function of data and number of ticks, and on packed data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.sim.blocks import Arrays, Packed
from crazyflow_ros.sim.data import SimData, SimStateDeriv
from crazyflow_ros.sim.packing import changed_leaves, repeat, traced
from crazyflow_ros.sim.sharding import blocks_of
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds

# On the CPU XLA uses half of what the widest vectors hold.
_COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}

StepFn = Callable[[SimData, Array | int], SimData]
Derivative = Callable[[SimData], SimStateDeriv]


def tick_of(pipeline: tuple[Stage, ...]) -> Stage:
    """All stages, one after the other."""

    def tick(data: SimData) -> SimData:
        for stage in pipeline:
            data = stage(data)
        return data

    return tick


def step_fn(tick: Stage, derivative: Derivative, worlds: Worlds) -> StepFn:
    """A function of data and number of ticks, compiled unless it is within a transformation."""
    finish = finishing(derivative)

    def pure(data: SimData, n_steps: Array | int = 1) -> SimData:
        if isinstance(n_steps, int):  # a loop that can be differentiated
            data = repeat(tick, data, n_steps, changed_leaves(traced(tick, data)))
        else:
            blocks = blocks_of(tick, data, worlds)
            return blocks.unpack(blocks.advance(blocks.pack(data), n_steps), finish)
        return finish(data)

    compiled = jax.jit(pure)

    def step(data: SimData, n_steps: Array | int = 1) -> SimData:
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(data))
        return (pure if traced else compiled)(data, n_steps)

    return step


def layout(data: SimData) -> object:
    """What a `PackedStep` depends on: structure, shapes and dtypes."""
    leaves, treedef = jax.tree.flatten(data)
    return treedef, tuple((x.shape, x.dtype) for x in leaves)


class PackedStep:
    """A compiled step on packed data.

    Each array that a compiled function takes or returns costs a microsecond, so there are few.
    """

    def __init__(self, tick: Stage, derivative: Derivative, data: SimData, worlds: Worlds) -> None:
        blocks, finish = blocks_of(tick, data, worlds), finishing(derivative)
        finished = changed_leaves(traced(finish, data))
        changed = [m or f for m, f in zip(blocks.moves, finished)]
        changed[blocks.command] = True
        fields = [path[0].name for path, _ in jax.tree.leaves_with_path(data)]
        self._changed = {
            name: [c for c, field in zip(changed, fields) if field == name]
            for name in dict.fromkeys(field for c, field in zip(changed, fields) if c)
        }

        def chosen(data: SimData) -> list[Array]:
            return [x for x, c in zip(jax.tree.leaves(data), changed) if c]

        @jax.jit
        def unpack(packed: Packed) -> list[Array]:
            return chosen(worlds.placed(blocks.unpack(packed, finish)))

        @partial(jax.jit, donate_argnums=0, compiler_options=_COMPILER_OPTIONS)
        def advance(moving: Arrays, fixed: Arrays, n_steps: Array) -> Arrays:
            return blocks.advance(Packed(moving, fixed), n_steps).moving

        self.pack, self.command = jax.jit(blocks.pack), blocks.commanded
        self._unpack, self._advance = unpack, advance

    def __call__(self, packed: Packed, n_steps: int) -> Packed:
        """Packed data after `n_steps` ticks."""
        return packed._replace(moving=self._advance(*packed, n_steps))

    def unpacked(self, packed: Packed, data: SimData) -> SimData:
        """The data, which differ from `data` only in what a step or command changes."""
        new = iter(self._unpack(packed))
        parts = {}
        for name, changed in self._changed.items():
            leaves, treedef = jax.tree.flatten(getattr(data, name))
            merged = [next(new) if c else x for x, c in zip(leaves, changed)]
            parts[name] = jax.tree.unflatten(treedef, merged)
        return data.replace(**parts)


def finishing(derivative: Derivative) -> Stage:
    """What comes after a step or reset: derivatives, and MJX data no longer show the state."""

    def finish(data: SimData) -> SimData:
        core = data.core.replace(mjx_synced=jnp.zeros_like(data.core.mjx_synced))
        return data.replace(states_deriv=derivative(data), core=core)

    return finish
