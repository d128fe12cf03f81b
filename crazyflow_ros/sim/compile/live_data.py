"""The data of a `Sim` between steps: packed, and unpacked when they are read."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.sim import functional
from crazyflow_ros.sim.compile.packed_step import PackedStep, Parts, packed_step
from crazyflow_ros.sim.compile.programs import Program
from crazyflow_ros.sim.compile.stepping import Derivative, unsynced
from crazyflow_ros.sim.data import SimData, SimState, SimStateDeriv, check_precision
from crazyflow_ros.sim.leaves import layout
from crazyflow_ros.sim.worlds import Worlds
from crazyflow_ros.xla.on_device import on_device

_SYNCED = "mjx_synced"  # key among the fields that have been read


class LiveData:
    """The data of a simulation: packed while a program runs, unpacked field by field when read.

    Args:
        data: The first data.
        worlds: Which arrays have an axis of worlds, and on which devices the worlds are.
        derivative: Compiled function that evaluates `states_deriv` when they are read.
    """

    def __init__(self, data: SimData, worlds: Worlds, derivative: Derivative) -> None:
        self._worlds, self._compiled_derivative = worlds, derivative
        self._any_rate = data.states_deriv  # for data whose derivative nothing reads
        pos = data.states.pos
        self._device = pos.sharding if worlds.mesh is None and pos.committed else None
        self._programs: dict[object, PackedStep] = {}
        self._view: Callable[[], _View | None] = _nobody
        self._assign(data)

    def _assign(self, data: SimData, step: PackedStep | None = None) -> None:
        """Hold data, packed for a step if there is one."""
        self._before, self._step = data, step
        self._parts: Parts = [] if step is None else step.pack(data)
        self._states: list[Any] = []
        self._fields: dict[str, Any] = {}
        self._view = _nobody

    @property
    def data(self) -> SimData:
        """The present data; further steps do not change them. Assigned data are checked."""
        if self._step is None:
            return self._before
        view = self._view()
        if view is None:
            now = self._step, self._parts, self._states, self._before, self._fields
            view = _View(*now, self._derive)
            self._view = weakref.ref(view)
        return SimData.lazy(view)

    @data.setter
    def data(self, data: SimData) -> None:
        data = self._worlds.shapes.checked(data, self._before, self._device)
        self._assign(self._worlds.placed(unsynced(data)))

    def restart(self, data: SimData) -> None:
        """Hold data after a reset. Their `states_deriv` are evaluated when they are read."""
        self._worlds.shapes.checked(data, self._before)

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
                step = packed_step(program, data, self._worlds, inputs)
                self._programs[key] = step  # the step keeps the program alive, and so its id
            if step.reads_derivative:
                data = data.replace(states_deriv=given.states_deriv)
            self._assign(data, step)
        elif step.reads_derivative:
            self._assign(jax.tree.map(lambda x: x, self.data), step)
        if len(self._parts) > 1:  # otherwise checked where the step is compiled
            check_precision(self._before)
        self._release_view()
        self._states = []  # out of date, if KeyboardInterrupt comes before they are replaced
        self._states, results = step(self._parts, *inputs)
        return results

    def command(self, control: Control, cmd: ArrayLike) -> None:
        """Check a command, and change the one in force."""
        if self._step is None:
            setter = getattr(functional, f"{control}_control")
            self._assign(self._worlds.placed(setter(self._before, cmd)))
        else:
            value = functional.checked_command(self._before, control, cmd)
            self._release_view()
            self._parts = self._step.commanded(self._parts, self._worlds.placed_array(value))

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

    def _release_view(self) -> None:
        """Drop the view before a step changes the data; a view still in use keeps a copy."""
        if (view := self._view()) is not None:
            view.keep()
        self._fields, self._view = {}, _nobody


class _View:
    """Fields of data, unpacked when they are first read."""

    def __init__(
        self,
        step: PackedStep,
        parts: Parts,
        states: list[Any],
        before: SimData,
        fields: dict[str, Any],
        derive: Derivative,
    ) -> None:
        self._step, self._parts, self._states, self._before = step, parts, states, before
        self._fields, self._derive = fields, derive

    def __call__(self, name: str) -> Any:
        if name not in self._fields:
            if name == "states" and self._states:
                return SimState.lazy(self._state)  # not stored, because it refers to this view
            now = self._parts, self._states, self._before
            value = self._step.field(name, *now, self._derive)
            if name == "core" and _SYNCED in self._fields:
                with jax.ensure_compile_time_eval():
                    value = value.replace(mjx_synced=on_device(True))
            self._fields[name] = value
        return self._fields[name]

    def _state(self, name: str) -> Any:
        key = f"states.{name}"
        if key not in self._fields:
            self._fields[key] = self._step.state(name, self._states, self._before)
        return self._fields[key]

    def keep(self) -> None:
        """Copy the data."""
        self._parts = [
            packed._replace(moving=_copied(packed.moving), common=_copied(packed.common))
            for packed in self._parts
        ]


def _nobody() -> None:
    return None


@jax.jit
def _copied(arrays: list[Array]) -> list[Array]:
    return [jnp.copy(array) for array in arrays]
