"""A pipeline as a function of data and number of ticks, and as one of packed data."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.compiler import known_options
from crazyflow_ros.kernels import separate_kernels, separation
from crazyflow_ros.sim.arguments import steps_of
from crazyflow_ros.sim.compile.advance import advance
from crazyflow_ros.sim.compile.blocks import LANES
from crazyflow_ros.sim.compile.ticks import Ending, Packed, Ticks, plugin_leaves, replaced
from crazyflow_ros.sim.data import SimData, SimStateDeriv, check_precision
from crazyflow_ros.sim.leaves import layout
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds

# By default, XLA on the CPU uses half of the widest vectors.
_COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}

_SYNCED = "mjx_synced"  # among the fields that have been read

StepFn = Callable[[SimData, Array | int], SimData]
Derivative = Callable[[SimData], SimStateDeriv]


def tick_of(pipeline: tuple[Stage, ...]) -> Stage:
    """Return a stage that runs all stages of a pipeline.

    Python runs them only once, although the same shapes are traced repeatedly: to find what a tick
    changes, in loops, in transformations.
    """

    @partial(jax.jit, inline=True)
    def tick(data: SimData, true: Array | None) -> SimData:
        check_precision(data)  # during tracing, which is repeated for another precision
        with separate_kernels(true):  # as an argument, because the trace outlives the context
            for stage in pipeline:
                data = stage(data)
        return data

    return lambda data: tick(data, separation())


def step_fn(tick: Stage, last: Ending | None, worlds: Worlds) -> StepFn:
    """Return a function of data and number of ticks, compiled unless within a transformation."""
    known: dict[object, Ticks] = {}

    def pure(data: SimData, n_steps: Array | int = 1) -> SimData:
        key = layout(data)
        if key not in known:
            known[key] = Ticks(tick, last, data, worlds.owned(data), together=False)
        ticks = known[key]
        flown = ticks.unpack(advance(ticks, ticks.pack(data), n_steps, worlds))
        leaves, treedef = jax.tree.flatten(unsynced(data))
        return jax.tree.unflatten(treedef, replaced(leaves, list(flown), list(flown.values())))

    compiled = jax.jit(pure)

    def step(data: SimData, n_steps: Array | int = 1) -> SimData:
        if not hasattr(n_steps, "dtype"):
            n_steps = steps_of(n_steps)
        if any(isinstance(x, jax.core.Tracer) for x in (n_steps, *jax.tree.leaves(data))):
            return pure(data, n_steps)
        return compiled(data, np.int32(n_steps))  # so that another number compiles nothing

    return step


class Program(Protocol):
    """A function of data and other arguments that is compiled on packed data."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Plugins that take the first arguments, (worlds, drones, k)."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Plugins that are the results, as arrays (k, worlds, drones); none for what it returns."""
        ...

    def layout(self, data: SimData, owned: list[bool], *inputs: Any) -> Ticks:
        """Return how the data are packed, from what the function reads and changes."""
        ...

    def run(self, ticks: Ticks, packed: Packed, worlds: Worlds, *inputs: Any) -> tuple[Packed, Any]:
        """Return packed data after it, and results."""
        ...


@dataclass(frozen=True, eq=False)
class Stepping:
    """Ticks and what comes after them; the last argument is the number of ticks."""

    tick: Stage
    last: Ending | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def layout(self, data: SimData, owned: list[bool], *_: Any) -> Ticks:
        """See `Program`."""
        alone = (*self.inputs, *self.outputs)
        return Ticks(self.tick, self.last, data, owned, together=True, alone=alone)

    def run(self, ticks: Ticks, packed: Packed, worlds: Worlds, n: Array) -> tuple[Packed, Any]:
        """See `Program`."""
        return advance(ticks, packed, n, worlds), None


@dataclass(frozen=True, eq=False)
class Composed:
    """Any function of data and arguments that returns data and results."""

    fn: Callable[..., tuple[SimData, Any]]
    inputs: tuple[str, ...] = field(default=(), init=False)
    outputs: tuple[str, ...] = field(default=(), init=False)

    def layout(self, data: SimData, owned: list[bool], *inputs: Any) -> Ticks:
        """See `Program`."""
        return Ticks(lambda data: self.fn(data, *inputs)[0], None, data, owned, together=True)

    def run(self, ticks: Ticks, packed: Packed, _: Worlds, *inputs: Any) -> tuple[Packed, Any]:
        """See `Program`."""
        data, results = self.fn(ticks.whole(packed), *inputs)
        return ticks.pack(data), results


class PackedStep:
    """A compiled step on packed data, and the functions that unpack them field by field.

    Each array that a compiled function takes or returns costs a microsecond or two, so there are
    few. A call costs 20 us or more, so a step of few worlds also returns their states.
    """

    def __init__(
        self,
        program: Program,
        derivative: Derivative,
        data: SimData,
        worlds: Worlds,
        inputs: tuple[Any, ...],
    ) -> None:
        ticks = program.layout(data, worlds.owned(data), *inputs)
        leaves = jax.tree.leaves_with_path(data)
        fields = [path[0].name for path, _ in leaves]
        on_mesh = worlds.mesh is not None
        shardings = jax.tree.leaves(worlds.shardings(data)) if on_mesh else None

        def unpacking(places: list[int]) -> Callable[[Packed], list[Array]]:
            def unpack(packed: Packed) -> list[Array]:
                leaves = ticks.unpack(packed)
                return [leaves[i] for i in places]

            return jax.jit(unpack, out_shardings=shardings and [shardings[i] for i in places])

        self._unpack: dict[str, tuple[list[int], Callable[[Packed], list[Array]]]] = {}
        for name in dict.fromkeys(fields):
            first = fields.index(name)
            places = [i for i in ticks.changed if fields[i] == name]
            if places:
                self._unpack[name] = [i - first for i in places], unpacking(places)

        @jax.jit
        def derive(data: SimData) -> SimStateDeriv:
            return worlds.placed(data.replace(states_deriv=derivative(data))).states_deriv

        self._inputs = [i for name in program.inputs for i in plugin_leaves(data, name)]
        outputs = [i for name in program.outputs for i in plugin_leaves(data, name)]
        self._outputs = [ticks.moving.index([i]) for i in outputs]
        self._donated = [i for i in range(len(ticks.moving)) if i not in self._outputs]
        few = not (on_mesh or outputs) and data.core.n_worlds * data.core.n_drones <= LANES
        states = [i for i in ticks.changed if few and fields[i] == "states"]

        @partial(jax.jit, donate_argnums=(0, 4), compiler_options=known_options(_COMPILER_OPTIONS))
        def run(
            donated: list[Array],
            given: list[Array],
            fixed: list[Array],
            shared: list[Array],
            common: list[Array],
            *inputs: Any,
        ) -> tuple[list[Array], list[Array], list[Array], Any]:
            places = [*self._donated, *self._outputs]
            arrays = dict(zip(places, [*donated, *given], strict=True))
            packed = Packed([arrays[i] for i in sorted(places)], fixed, shared, common)
            check_precision(ticks.whole(packed))
            packed, results = program.run(ticks, packed, worlds, *inputs)
            leaves = ticks.unpack(packed)
            return packed.moving, packed.common, [leaves[i] for i in states], results

        self.pack = jax.jit(ticks.pack)
        self.reads_derivative = any(
            ticks.used[i] for i, name in enumerate(fields) if name == "states_deriv"
        )
        self._derive, self._run, self.commanded = derive, run, ticks.commanded
        self.program = program
        self._state_names = [leaves[i][0][1].name for i in states]

    def __call__(self, packed: Packed, *inputs: Any) -> tuple[Packed, list[Array], Any]:
        """Return packed data after the program, the states for `field`, and the results.

        Donates the arrays that change, except former results, which others may hold.
        """
        if self._inputs:
            for leaf, value in zip(self._inputs, inputs):
                packed = self.commanded(packed, value, leaf)
            inputs = inputs[len(self._inputs) :]
        donated: list[Array] = packed.moving
        given: list[Array] = []
        if self._outputs:
            donated = [packed.moving[i] for i in self._donated]
            given = [packed.moving[i] for i in self._outputs]
        moving, common, states, results = self._run(donated, given, *packed[1:], *inputs)
        if self._outputs:
            results = [moving[i] for i in self._outputs]
        return packed._replace(moving=moving, common=common), states, results

    def field(self, name: str, packed: Packed, states: list[Array], before: SimData) -> Any:
        """Return a field of the data.

        Args:
            name: Name of the field.
            packed: Packed data after the step.
            states: States that the step returned, if any.
            before: The data before packing, for leaves that neither ticks nor commands change.
        """
        if name == "states_deriv":
            others = self._unpack.keys() - {name}
            changes = {field: self.field(field, packed, states, before) for field in others}
            with jax.ensure_compile_time_eval():
                return self._derive(before.replace(**changes))
        if name not in self._unpack:
            return getattr(before, name)
        places, unpack = self._unpack[name]
        if states and name == "states":
            return before.states.replace(**dict(zip(self._state_names, states)))
        leaves, treedef = jax.tree.flatten(getattr(before, name))
        with jax.ensure_compile_time_eval():  # the caller may be within a transformation
            return jax.tree.unflatten(treedef, replaced(leaves, places, unpack(packed)))


class PackedData:
    """Data while they are stepped: packed, and unpacked field by field when they are read."""

    def __init__(self, step: PackedStep, data: SimData) -> None:
        self._step, self._before, self._packed = step, data, step.pack(data)
        self._states: list[Array] = []
        self._fields: dict[str, Any] = {"states_deriv": data.states_deriv}
        self._view: Callable[[], _View | None] = _nobody

    @property
    def data(self) -> SimData:
        """The present data; further steps do not change them."""
        view = self._view()
        if view is None:
            now = partial(
                self._step.field, packed=self._packed, states=self._states, before=self._before
            )
            view = _View(now, self._fields)
            self._view = weakref.ref(view)
        return SimData.lazy(view)

    def runs(self, program: Program) -> bool:
        """Return whether these data are packed for a program."""
        return self._step.program is program

    def run(self, *inputs: Any) -> Any:
        """Advance the data, and return the results."""
        if self._step.reads_derivative:
            self._before = jax.tree.map(lambda x: x, self.data)
            self._packed = self._step.pack(self._before)
        self._packed, self._states, results = self._step(self._parted(), *inputs)
        return results

    def command(self, value: Array | np.ndarray) -> None:
        """Change the command in force, (worlds, drones, k)."""
        self._packed = self._step.commanded(self._parted(), value)

    @property
    def is_synced(self) -> bool:
        """Whether the MJX data show the present state."""
        return _SYNCED in self._fields

    def mark_synced(self) -> None:
        """Record that the MJX data show the present state."""
        self._fields.pop("core", None)
        self._fields[_SYNCED] = True

    def _parted(self) -> Packed:
        """Return the packed data; copy them if a view needs them, because a step donates them."""
        packed = self._packed
        if self._view() is not None:
            packed = packed._replace(moving=_copied(packed.moving), common=_copied(packed.common))
        self._fields, self._view = {}, _nobody
        return packed


class _View:
    """Fields of data, unpacked when they are first read."""

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
def _copied(arrays: list[Array]) -> list[Array]:
    return [jnp.copy(array) for array in arrays]


@lru_cache(maxsize=64)
def count(n: int) -> Array:
    """Return a number as an array, which compiled functions accept in a third of the time."""
    with jax.ensure_compile_time_eval():
        return jnp.asarray(n, jnp.int32)


def unsynced(data: SimData) -> SimData:
    """Mark the MJX data as out of date."""
    core = data.core.replace(mjx_synced=jnp.zeros_like(data.core.mjx_synced))
    return data.replace(core=core)


def deriving(derivative: Derivative) -> Ending:
    """Return the ending of a step that evaluates the derivative."""
    return lambda _, data: data.replace(states_deriv=derivative(data))


def finishing(derivative: Derivative) -> Stage:
    """Return the stage after a reset: derivatives, and MJX data marked out of date."""
    derive = deriving(derivative)
    return lambda data: unsynced(derive(data, data))
