"""A pipeline as a function of data and number of ticks, and on packed data."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.compiler import known_options
from crazyflow_ros.kernels import separate_kernels, separation
from crazyflow_ros.sim.arguments import steps_of
from crazyflow_ros.sim.compile.blocks import Arrays, Packed
from crazyflow_ros.sim.compile.packing import repeat
from crazyflow_ros.sim.compile.sharding import blocks_of
from crazyflow_ros.sim.data import SimData, SimStateDeriv, check_precision
from crazyflow_ros.sim.leaves import changed_leaves, traced
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds

# On the CPU XLA uses half of what the widest vectors hold.
_COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}

_SYNCED = "mjx_synced"  # among the fields that have been looked at

StepFn = Callable[[SimData, Array | int], SimData]
Derivative = Callable[[SimData], SimStateDeriv]


def tick_of(pipeline: tuple[Stage, ...]) -> Stage:
    """All stages, one after the other.

    Python runs them once, however often the same shapes are traced: for what a tick changes, in
    loops, in transformations.
    """

    @partial(jax.jit, inline=True)
    def tick(data: SimData, true: Array | None) -> SimData:
        check_precision(data)  # while it is traced, as it is anew with another precision
        with separate_kernels(true):  # as an argument: what is traced here outlives the context
            for stage in pipeline:
                data = stage(data)
        return data

    return lambda data: tick(data, separation())


def step_fn(tick: Stage, derivative: Derivative, worlds: Worlds) -> StepFn:
    """A function of data and number of ticks, compiled unless it is within a transformation."""
    finish = finishing(derivative)

    def pure(data: SimData, n_steps: Array | int = 1) -> SimData:
        if isinstance(n_steps, int):  # a loop that can be differentiated
            return finish(repeat(tick, data, n_steps, changed_leaves(traced(tick, data))))
        blocks = blocks_of(tick, data, worlds)
        flown = blocks.unpack(blocks.advance(blocks.pack(data), n_steps))
        leaves, treedef = jax.tree.flatten(data)
        merged = [flown.get(i, leaf) for i, leaf in enumerate(leaves)]
        return finish(jax.tree.unflatten(treedef, merged))

    compiled = jax.jit(pure)

    def step(data: SimData, n_steps: Array | int = 1) -> SimData:
        if not hasattr(n_steps, "dtype"):
            n_steps = steps_of(n_steps)
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(data))
        return (pure if traced else compiled)(data, n_steps)

    return step


class PackedStep:
    """A compiled step on packed data, and what makes them data again, field by field.

    Each array that a compiled function takes or returns costs a microsecond or two, so there are
    few. A call of one costs 20 and more, so that a step of few worlds also returns their states.
    """

    def __init__(self, tick: Stage, derivative: Derivative, data: SimData, worlds: Worlds) -> None:
        blocks = blocks_of(tick, data, worlds)
        changed = {i for i, moves in enumerate(blocks.moves) if moves} | {blocks.command}
        leaves = jax.tree.leaves_with_path(data)
        fields = [path[0].name for path, _ in leaves]
        on_mesh = worlds.mesh is not None
        shardings = jax.tree.leaves(worlds.shardings(data)) if on_mesh else None

        def unpacking(places: list[int]) -> Callable[[Packed], list[Array]]:
            def unpack(packed: Packed) -> list[Array]:
                leaves = blocks.unpack(packed)
                return [leaves[i] for i in places]

            return jax.jit(unpack, out_shardings=shardings and [shardings[i] for i in places])

        self._unpack: dict[str, tuple[list[int], Callable[[Packed], list[Array]]]] = {}
        for name in dict.fromkeys(fields):
            first = fields.index(name)
            places = [i for i in sorted(changed) if fields[i] == name]
            if places:
                self._unpack[name] = [i - first for i in places], unpacking(places)

        @jax.jit
        def derive(data: SimData) -> SimStateDeriv:
            return worlds.placed(data.replace(states_deriv=derivative(data))).states_deriv

        @partial(jax.jit, donate_argnums=0, compiler_options=known_options(_COMPILER_OPTIONS))
        def advance(
            moving: Arrays, fixed: Arrays, n_steps: Array | int
        ) -> tuple[Arrays, list[Array]]:
            packed = blocks.advance(Packed(moving, fixed), n_steps)
            if blocks.n_blocks > 1 or on_mesh:
                return packed.moving, []
            leaves = blocks.unpack(packed)
            return packed.moving, [leaves[i] for i in sorted(changed) if fields[i] == "states"]

        self.pack, self.commanded = jax.jit(blocks.pack), blocks.commanded
        self.reads_derivative = any(
            blocks.used[i] for i, name in enumerate(fields) if name == "states_deriv"
        )
        self._derive, self._advance, self._on_mesh = derive, advance, on_mesh
        self._state_names = [
            path[1].name
            for i, (path, _) in enumerate(leaves)
            if i in changed and fields[i] == "states"
        ]

    def __call__(self, packed: Packed, n_steps: int) -> tuple[Packed, list[Array]]:
        """Packed data after `n_steps` ticks, and the states for `field`.

        Uses up the arrays that ticks change.
        """
        n = n_steps if self._on_mesh else _count(n_steps)
        moving, states = self._advance(*packed, n)
        return Packed(moving, packed.fixed), states

    def field(self, name: str, packed: Packed, states: list[Array], before: SimData) -> Any:
        """A field of the data.

        Args:
            name: Of the field.
            packed: What has been stepped.
            states: What the step returned, or nothing.
            before: The data that were packed: what neither a tick nor a command changes.
        """
        if name == "states_deriv":
            changes = {field: self.field(field, packed, states, before) for field in self._unpack}
            with jax.ensure_compile_time_eval():
                return self._derive(before.replace(**changes))
        if name not in self._unpack:
            return getattr(before, name)
        places, unpack = self._unpack[name]
        if states and name == "states":
            return before.states.replace(**dict(zip(self._state_names, states)))
        leaves, treedef = jax.tree.flatten(getattr(before, name))
        with jax.ensure_compile_time_eval():  # whoever looks may be within a transformation
            for i, leaf in zip(places, unpack(packed)):
                leaves[i] = leaf
        return jax.tree.unflatten(treedef, leaves)


class PackedData:
    """Data while they are stepped: packed, and unpacked field by field when somebody looks."""

    def __init__(self, step: PackedStep, data: SimData) -> None:
        self._step, self._before, self._packed = step, data, step.pack(data)
        self._states: list[Array] = []
        self._fields: dict[str, Any] = {"states_deriv": data.states_deriv}
        self._view: Callable[[], _View | None] = _nobody

    @property
    def data(self) -> SimData:
        """The data as they are now; they stay so."""
        view = self._view()
        if view is None:
            now = partial(
                self._step.field, packed=self._packed, states=self._states, before=self._before
            )
            view = _View(now, self._fields)
            self._view = weakref.ref(view)
        return SimData.lazy(view)

    def advance(self, n_steps: int) -> None:
        """Go on by `n_steps` ticks."""
        if self._step.reads_derivative:
            self._before = jax.tree.map(lambda x: x, self.data)
            self._packed = self._step.pack(self._before)
        self._packed, self._states = self._step(self._parted(), n_steps)

    def command(self, value: Array | np.ndarray) -> None:
        """Change the command in force, (worlds, drones, k)."""
        self._packed = self._step.commanded(self._parted(), value)

    @property
    def is_synced(self) -> bool:
        """Do the MJX data show the present state?"""
        return _SYNCED in self._fields

    def mark_synced(self) -> None:
        """Note that they do."""
        self._fields.pop("core", None)
        self._fields[_SYNCED] = True

    def _parted(self) -> Packed:
        """The packed data, without what others may still look at: a step uses them up."""
        packed = self._packed
        if self._view() is not None:
            packed = packed._replace(moving=_copied(packed.moving))
        self._fields, self._view = {}, _nobody
        return packed


class _View:
    """Fields of data, unpacked when they are first asked for."""

    def __init__(self, field: Callable[[str], Any], fields: dict[str, Any]) -> None:
        self._field, self._fields = field, fields

    def __call__(self, name: str) -> Any:
        if name not in self._fields:
            value = self._field(name)
            if name == "core" and _SYNCED in self._fields:
                with jax.ensure_compile_time_eval():
                    value = value.replace(mjx_synced=jnp.ones_like(value.mjx_synced))
            self._fields[name] = value
        return self._fields[name]


def _nobody() -> None:
    return None


@jax.jit
def _copied(arrays: Arrays) -> Arrays:
    return jax.tree.map(jnp.copy, arrays)


@lru_cache(maxsize=64)
def _count(n: int) -> Array:
    """A number as an array: taking one takes a compiled function a third of the time."""
    with jax.ensure_compile_time_eval():
        return jnp.asarray(n, jnp.int32)


def finishing(derivative: Derivative) -> Stage:
    """What comes after a step or reset: derivatives, and MJX data no longer show the state."""

    def finish(data: SimData) -> SimData:
        core = data.core.replace(mjx_synced=jnp.zeros_like(data.core.mjx_synced))
        return data.replace(states_deriv=derivative(data), core=core)

    return finish
