"""The data of a `Sim` between steps: packed, and unpacked when they are read."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.compiler import known_options
from crazyflow_ros.control import Control
from crazyflow_ros.on_device import on_device
from crazyflow_ros.sim import functional
from crazyflow_ros.sim.compile.programs import Program
from crazyflow_ros.sim.compile.stepping import Derivative, unsynced
from crazyflow_ros.sim.compile.ticks import Packed, plugin_leaves, replaced
from crazyflow_ros.sim.data import SimData, SimStateDeriv, check_precision
from crazyflow_ros.sim.leaves import layout
from crazyflow_ros.sim.worlds import Worlds

# By default, XLA on the CPU uses only half the width of the widest vectors.
_COMPILER_OPTIONS = {"xla_cpu_prefer_vector_width": 512}

_FEW = 2048  # drones whose states a step returns in less time than another call takes

_SYNCED = "mjx_synced"  # key among the fields that have been read


class PackedStep:
    """A compiled step on packed data, and the functions that unpack them field by field.

    Each array that a compiled function takes or returns costs a microsecond or two, so there are
    few. A call costs 20 us or more, so a step of few worlds also returns their states.
    """

    def __init__(
        self,
        program: Program,
        derive: Derivative,
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

        self._inputs = [i for name in program.inputs for i in plugin_leaves(data, name)]
        held_in = {
            i: (k, rows)
            for k, group in enumerate(ticks.moving)
            for i, rows in ticks.rows_of_each(group)
        }
        outputs = [i for name in program.outputs for i in plugin_leaves(data, name)]
        self._results = [held_in[i] for i in outputs]
        self._outputs = list(dict.fromkeys(k for k, _ in self._results))
        self._donated = [i for i in range(len(ticks.moving)) if i not in self._outputs]
        few = not (on_mesh or outputs) and data.core.n_worlds * data.core.n_drones <= _FEW
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

        Donates the arrays that change, except earlier results, which callers may hold.
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
            arrays = {k: np.asarray(moving[k]) for k in self._outputs}
            results = [arrays[k][rows] for k, rows in self._results]
        return Packed(moving, packed.fixed, packed.shared, common), states, results

    def field(self, name: str, packed: Packed, states: list[Array], before: SimData) -> Any:
        """Return a field of the data.

        Args:
            name: Name of the field.
            packed: Packed data after the step.
            states: States that the step returned, if any.
            before: The data before packing, for leaves that neither ticks nor commands change.
        """
        if states and name == "states":
            return before.states.replace(**dict(zip(self._state_names, states)))
        if name == "states_deriv":
            others = self._unpack.keys() - {name}
            changes = {field: self.field(field, packed, states, before) for field in others}
            return self._derive(before.replace(**changes))
        if name not in self._unpack:
            return getattr(before, name)
        places, unpack = self._unpack[name]
        leaves, treedef = jax.tree.flatten(getattr(before, name))
        with jax.ensure_compile_time_eval():  # the caller may be within a transformation
            return jax.tree.unflatten(treedef, replaced(leaves, places, unpack(packed)))


class LiveData:
    """The data of a simulation: packed while a program runs, unpacked field by field when read.

    Args:
        data: The first data.
        worlds: Which arrays have an axis of worlds, and on which devices the worlds are.
        derivative: Evaluates `states_deriv`, when they are read.
    """

    def __init__(self, data: SimData, worlds: Worlds, derivative: Derivative) -> None:
        @jax.jit
        def derive(data: SimData) -> SimStateDeriv:
            return worlds.placed(data.replace(states_deriv=derivative(data))).states_deriv

        self._worlds, self._compiled_derivative = worlds, derive
        self._any_rate = data.states_deriv  # for data whose derivative nothing reads
        self._programs: dict[object, PackedStep] = {}
        self._assign(data)

    def _assign(self, data: SimData, step: PackedStep | None = None) -> None:
        """Hold data, packed for a step if there is one."""
        self._before, self._step = data, step
        self._packed = Packed([], [], [], []) if step is None else step.pack(data)
        self._states: list[Array] = []
        self._fields: dict[str, Any] = {}
        self._view: Callable[[], _View | None] = _nobody

    @property
    def data(self) -> SimData:
        """The present data; further steps do not change them. Assigned data are checked."""
        if self._step is None:
            return self._before
        view = self._view()
        if view is None:
            view = _View(self._step, self._packed, self._states, self._before, self._fields)
            self._view = weakref.ref(view)
        return SimData.lazy(view)

    @data.setter
    def data(self, data: SimData) -> None:
        synced: Any = data.core.mjx_synced if isinstance(data, SimData) else None
        if isinstance(synced, bool):  # as programs for Crazyflow assign it
            data = data.replace(core=data.core.replace(mjx_synced=on_device(synced)))
        self._worlds.shapes.check(data, self._before)
        self._assign(self._worlds.placed(unsynced(data)))

    def restart(self, data: SimData) -> None:
        """Hold data after a reset. Their `states_deriv` are evaluated when they are read."""
        self._worlds.shapes.check(data, self._before)

        def field(name: str) -> Any:
            return self._derive(data) if name == "states_deriv" else getattr(data, name)

        self._assign(SimData.lazy(field))

    def _derive(self, data: SimData) -> SimStateDeriv:
        with jax.ensure_compile_time_eval():  # the caller may be within a transformation
            return self._compiled_derivative(data)

    def forget_programs(self) -> None:
        """Free what was compiled, after data have been assigned."""
        self._programs.clear()

    def run(self, program: Program, *inputs: Any) -> Any:
        """Advance the data by a program, and return its results."""
        step = self._step
        if step is None or step.program is not program:
            given = self.data
            data = given.replace(states_deriv=self._any_rate)
            data = jax.tree.map(lambda x: x, data)  # all of it, even if not unpacked
            data = self._worlds.placed(unsynced(data))
            key = id(program), layout(data)
            if (step := self._programs.get(key)) is None:
                step = PackedStep(program, self._derive, data, self._worlds, inputs)
                self._programs[key] = step  # the step keeps the program alive, and so its id
            if step.reads_derivative:
                data = data.replace(states_deriv=given.states_deriv)
            self._assign(data, step)
        elif step.reads_derivative:
            self._assign(jax.tree.map(lambda x: x, self.data), step)
        self._packed, self._states, results = step(self._parted(), *inputs)
        return results

    def command(self, control: Control, cmd: ArrayLike) -> None:
        """Check a command, and change the one in force."""
        if self._step is None:
            setter = getattr(functional, f"{control}_control")
            self._assign(self._worlds.placed(setter(self._before, cmd)))
        else:
            value = functional.checked_command(self._before, control, cmd)
            self._packed = self._step.commanded(self._parted(), self._worlds.placed_array(value))

    @property
    def is_synced(self) -> bool:
        """Whether the MJX data show the present state."""
        return bool(self._before.core.mjx_synced) if self._step is None else _SYNCED in self._fields

    def mark_synced(self) -> None:
        """Record that the MJX data show the present state."""
        if self._step is None:
            core = self._before.core.replace(mjx_synced=on_device(True))
            self._assign(self._before.replace(core=core))
        else:
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

    def __init__(
        self,
        step: PackedStep,
        packed: Packed,
        states: list[Array],
        before: SimData,
        fields: dict[str, Any],
    ) -> None:
        self._step, self._packed, self._states, self._before = step, packed, states, before
        self._fields = fields

    def __call__(self, name: str) -> Any:
        if name not in self._fields:
            value = self._step.field(name, self._packed, self._states, self._before)
            if name == "core" and _SYNCED in self._fields:
                with jax.ensure_compile_time_eval():
                    value = value.replace(mjx_synced=on_device(True))
            self._fields[name] = value
        return self._fields[name]


def _nobody() -> None:
    return None


@jax.jit
def _copied(arrays: list[Array]) -> list[Array]:
    return [jnp.copy(array) for array in arrays]
