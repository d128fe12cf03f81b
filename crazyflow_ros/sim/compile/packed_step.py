"""A compiled step on packed data, of all worlds or of a part of them on each core."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.sim.compile.cores import on_each_core, parts_of
from crazyflow_ros.sim.compile.programs import Program
from crazyflow_ros.sim.compile.stepping import Derivative
from crazyflow_ros.sim.compile.ticks import Packed, plugin_leaves, replaced
from crazyflow_ros.sim.data import SimData, check_precision
from crazyflow_ros.sim.leaves import layout
from crazyflow_ros.sim.worlds import Worlds
from crazyflow_ros.xla.compiler import known_options

# By default, XLA on the CPU uses only half the width of the widest vectors.
_COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}

_FEW = 2048  # drones whose states a step returns in less time than another call takes

_MOST_SHARED = 16  # kinds of simulations

Parts = list[Packed]
"""Packed data of each part of the worlds, see `cores`."""


class PackedStep:
    """A compiled step on packed data, and the functions that unpack them field by field.

    Each array that a compiled function takes or returns costs a microsecond or two, so there are
    few. A call costs 10 us or more, so a step of few worlds also returns their states.

    Simulations of one kind share a step, see `packed_step`.
    """

    def __init__(
        self,
        program: Program,
        data: SimData,
        worlds: Worlds,
        inputs: tuple[Any, ...],
    ) -> None:
        ticks = program.layout(data, worlds.owned(data), *inputs)
        leaves = jax.tree.leaves_with_path(data)
        fields = [path[0].name for path, _ in leaves]
        on_mesh = worlds.mesh is not None
        shardings = jax.tree.leaves(worlds.shardings(data)) if on_mesh else None

        def unpacking(places: list[int]) -> Callable[[Parts], list[Array]]:
            def unpack(parts: Parts) -> list[Array]:
                leaves = [ticks.unpack(packed) for packed in parts]
                if len(parts) == 1:
                    return [leaves[0][i] for i in places]
                return [jnp.concatenate([of_part[i] for of_part in leaves]) for i in places]

            return jax.jit(unpack, out_shardings=shardings and [shardings[i] for i in places])

        self._unpack: dict[str, tuple[list[int], Callable[[Parts], list[Array]]]] = {}
        for name in dict.fromkeys(fields):
            first = fields.index(name)
            places = [i for i in ticks.changed if fields[i] == name]
            if places:
                self._unpack[name] = [i - first for i in places], unpacking(places)

        self._inputs = [i for name in program.inputs for i in plugin_leaves(data, name)]
        held_in = {
            i: (k, rows)
            for k, group in enumerate(ticks.moving)
            for i, rows in ticks.rows_of_each(group)
        }
        outputs = [i for name in program.outputs for i in plugin_leaves(data, name)]
        self._results = [held_in[i] for i in outputs]
        self._outputs = list(dict.fromkeys(k for k, _ in self._results))
        n_worlds, n_drones = data.core.n_worlds, data.core.n_drones
        on_cpu = {device.platform for device in data.states.pos.devices()} == {"cpu"}
        divisible = program.by_world and not ticks.common and on_cpu and not on_mesh
        self._worlds = parts_of(n_worlds, n_drones) if divisible else [slice(n_worlds)]
        few = not on_mesh and n_worlds * n_drones <= _FEW
        states = [i for i in ticks.changed if few and not outputs and fields[i] == "states"]
        # Results of parts are copied, so that their memory is donated, too.
        self._given = [] if len(self._worlds) > 1 else self._outputs
        self._donated = [i for i in range(len(ticks.moving)) if i not in self._given]

        def run(
            donated: list[Array],
            given: list[Array],
            fixed: list[Array],
            shared: list[Array],
            common: list[Array],
            *inputs: Any,
        ) -> tuple[list[Array], list[Array], list[Array], Any]:
            places = [*self._donated, *self._given]
            arrays = dict(zip(places, [*donated, *given], strict=True))
            packed = Packed([arrays[i] for i in sorted(places)], fixed, shared, common)
            check_precision(ticks.whole(packed))
            packed, results = program.run(ticks, packed, worlds, *inputs)
            leaves = ticks.unpack(packed)
            return packed.moving, packed.common, [leaves[i] for i in states], results

        self._pack = jax.jit(ticks.pack)
        self.reads_derivative = any(
            ticks.used[i] for i, name in enumerate(fields) if name == "states_deriv"
        )
        options = known_options(_COMPILER_OPTIONS)
        self._ticks = ticks
        self._run = jax.jit(run, donate_argnums=(0, 4), compiler_options=options)
        self._run_part: Callable[..., Any] | None = None  # compiled for one of several parts
        self.program = program
        self._state_places = {leaves[i][0][1].name: k for k, i in enumerate(states)}

    def pack(self, data: SimData) -> Parts:
        """Return packed data of each part of the worlds."""
        packed = self._pack(data)
        moving, fixed = (self._divided(arrays) for arrays in packed[:2])
        return [packed._replace(moving=m, fixed=f) for m, f in zip(moving, fixed, strict=True)]

    def _divided(self, arrays: list[Any]) -> list[list[Any]]:
        """Divide arrays (rows, worlds, drones)."""
        if len(self._worlds) == 1:
            return [arrays]
        return [[array[:, worlds] for array in arrays] for worlds in self._worlds]

    def commanded(self, parts: Parts, value: Array | np.ndarray, leaf: int | None = None) -> Parts:
        """Return packed data with a new command, or another new leaf, (worlds, drones, k)."""
        if len(self._worlds) == 1:
            return [self._ticks.commanded(parts[0], value, leaf)]
        values = [value[worlds] for worlds in self._worlds]
        return [self._ticks.commanded(*pair, leaf) for pair in zip(parts, values, strict=True)]

    def __call__(self, parts: Parts, *inputs: Any) -> tuple[list[Array], Any]:
        """Run the program, replace the packed data in `parts`, and return states and results.

        Donates the arrays that change, except earlier results, which callers may hold.

        Args:
            parts: Packed data before the program; afterwards, also if the call is interrupted, the
                packed data after it.
            *inputs: The arguments of the program.

        Returns:
            The states for `field`, and the results.
        """
        if self._inputs:
            for leaf, value in zip(self._inputs, inputs):
                parts[:] = self.commanded(parts, value, leaf)
            inputs = inputs[len(self._inputs) :]
        if len(parts) > 1:
            return [], self._run_on_each_core(parts, inputs)
        moving, states, results = self._advance(self._run, parts, 0, inputs)
        if self._outputs:
            arrays = {k: np.asarray(moving[k]) for k in self._outputs}
            results = [arrays[k][rows] for k, rows in self._results]
        return states, results

    def _run_on_each_core(self, parts: Parts, inputs: tuple[Any, ...]) -> list[np.ndarray]:
        """Run the program for all parts at the same time, and return the results."""
        # Compiled in this thread, because others do not have its settings of JAX.
        run = self._run_part
        if run is None:
            run = self._run_part = self._run.lower(*self._arguments(parts[0], inputs)).compile()
        moving, n_worlds = parts[0].moving, self._worlds[-1].stop
        arrays = {
            k: np.empty((moving[k].shape[0], n_worlds, moving[k].shape[2]), moving[k].dtype)
            for k in self._outputs
        }

        def advance(i: int) -> None:
            moving, _, _ = self._advance(run, parts, i, inputs)
            for k, array in arrays.items():
                array[:, self._worlds[i]] = moving[k]

        on_each_core(advance, len(parts))
        for array in arrays.values():
            array.setflags(write=False)  # as for few worlds, whose results are the arrays of JAX
        return [arrays[k][rows] for k, rows in self._results]

    def _arguments(self, packed: Packed, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of the compiled function."""
        donated: list[Array] = packed.moving
        given: list[Array] = []
        if self._given:
            donated = [packed.moving[i] for i in self._donated]
            given = [packed.moving[i] for i in self._given]
        return donated, given, *packed[1:], *inputs

    def _advance(
        self, run: Callable[..., Any], parts: Parts, i: int, inputs: tuple[Any, ...]
    ) -> tuple[list[Array], list[Array], Any]:
        """Advance a part of the worlds; return what moves, states and results."""
        returned: list[Any] = []
        try:
            # One operation: KeyboardInterrupt cannot come between the call, which donates what
            # the list of parts holds, and the results.
            returned.extend(starmap(run, [self._arguments(parts[i], inputs)]))
        finally:
            for moving, common, _, _ in returned:
                parts[i] = parts[i]._replace(moving=moving, common=common)
        moving, _, states, results = returned[0]
        return moving, states, results

    def field(
        self, name: str, parts: Parts, states: list[Array], before: SimData, derive: Derivative
    ) -> Any:
        """Return a field of the data.

        Args:
            name: Name of the field.
            parts: Packed data after the step.
            states: States that the step returned, if any.
            before: The data before packing, for leaves that neither ticks nor commands change.
            derive: Evaluates `states_deriv`.
        """
        if states and name == "states":
            present = {name: self.state(name, states, before) for name in self._state_places}
            return before.states.replace(**present)
        if name == "states_deriv":
            others = self._unpack.keys() - {name}
            changes = {field: self.field(field, parts, states, before, derive) for field in others}
            return derive(before.replace(**changes))
        if name not in self._unpack:
            return getattr(before, name)
        places, unpack = self._unpack[name]
        leaves, treedef = jax.tree.flatten(getattr(before, name))
        with jax.ensure_compile_time_eval():  # the caller may be within a transformation
            new = unpack(parts)
        return jax.tree.unflatten(treedef, replaced(leaves, places, new))

    def state(self, name: str, states: list[Any], before: SimData) -> Array:
        """Return a field of the states that a step returned; see `field`."""
        place = self._state_places.get(name)
        if place is None:
            return getattr(before.states, name)
        state: Array = states[place]
        return state


_shared: dict[object, PackedStep] = {}  # the last used come last


def packed_step(
    program: Program, data: SimData, worlds: Worlds, inputs: tuple[Any, ...]
) -> PackedStep:
    """Return a step. Simulations of one kind share what is compiled.

    Args:
        program: The program.
        data: Data of the layout that the step packs.
        worlds: The worlds and their devices.
        inputs: Arguments of the program.
    """
    if not program.is_shared:
        return PackedStep(program, data, worlds, inputs)
    n_parts = len(parts_of(data.core.n_worlds, data.core.n_drones))
    key = program, layout(data), worlds, n_parts, frozenset(data.states.pos.devices())
    step = _shared.pop(key, None) or PackedStep(program, data, worlds, inputs)
    _shared[key] = step
    for oldest in list(_shared)[:-_MOST_SHARED]:
        _shared.pop(oldest, None)
    return step
