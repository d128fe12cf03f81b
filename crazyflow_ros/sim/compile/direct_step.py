"""A step on packed data in its own memory, called without JAX, see `xla.machine_code`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import jax
import numpy as np
from jax import Array
from jax.stages import Compiled

from crazyflow_ros.sim.compile.ticks import Packed, Ticks
from crazyflow_ros.sim.data import check_dtype
from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.machine_code import MachineCode
from crazyflow_ros.xla.on_device import ArrayPlace, copying, seen_by_jax

_CHECKING = ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs")  # done by JAX's calls


class DirectStep:
    """A compiled step, and its memory.

    Attributes:
        packed: The packed data: arrays of NumPy, which a call overwrites.
        seen: The same for compiled functions, which have to end before that.
        states: The states that it returns, which a call overwrites.
        copies: For each of these states, a function that returns a copy on the device.
    """

    def __init__(self, code: MachineCode, compiled: Compiled, ticks: Ticks, like: Array) -> None:
        """Give names to memory; see `of`."""
        memory: Any = code.arguments
        (moving, _, fixed, shared, _, *inputs), _ = jax.tree.unflatten(compiled.in_tree, memory)
        _, _, self.states, _ = jax.tree.unflatten(compiled.out_tree, code.results)
        self.packed = Packed(moving, fixed, shared, [])
        own: tuple[Any, ...] = self.packed
        self._place = place = ArrayPlace.of(like)
        seen: list[Any] = [[seen_by_jax(x, place) for x in arrays] for arrays in own]
        self.seen = Packed(*seen)
        self.copies = [copying(state, like) for state in self.states]
        self._code, self._ticks = code, ticks
        self._n_packed = len(code.arguments) - len(inputs)
        self._leaves: dict[int | None, np.ndarray] = {}
        self._x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]

    @classmethod
    def of(
        cls, function: Callable[..., Any], arguments: Sequence[Any], ticks: Ticks, **options: Any
    ) -> Self | None:
        """Return a compiled step; None if only JAX can call it, as code from JAX's own cache.

        Args:
            function: The function to compile, see `PackedStep`.
            arguments: Its first arguments, which are only read.
            ticks: Layout of the data.
            **options: Of `jax.jit`.
        """
        if any(getattr(jax.config, name) for name in _CHECKING):
            return None
        program = compiled_files.compiled(lambda: function, arguments, **options)
        code = MachineCode.tried(program.function, arguments, program.description)
        moving = arguments[0]
        if code is None or any(
            a is not b for a, b in zip(code.arguments, code.results[: len(moving)])
        ):
            return None
        return cls(code, program.function, ticks, moving[0])

    def takes(self, packed: Packed) -> bool:
        """Make `packed` the data of the step; return False if only JAX can compute it.

        Raises:
            ValueError: The data have double precision, and JAX uses single precision.
        """
        if jax.config.jax_enable_x64 is not self._x64:  # type: ignore[attr-defined]
            for array in self.packed.moving:
                check_dtype(array.dtype)
            return False
        if packed is self.packed:
            return True
        pairs = [pair for own, new in zip(self.packed, packed) for pair in zip(own, new)]
        if any(isinstance(new, jax.core.Tracer) for _, new in pairs):
            return False
        for own, new in pairs:
            if own is not new:
                own[...] = new
        return True

    def on_device(self, packed: Packed) -> Packed:
        """Return packed data, of which arrays of NumPy are put on the device."""
        given: tuple[Any, ...] = packed
        put: list[Any] = [[self._place.put(x) for x in arrays] for arrays in given]
        return Packed(*put)

    def command(self, value: np.ndarray, leaf: int | None) -> None:
        """Set the command in force, or another leaf, (worlds, drones, k)."""
        memory = self._leaves.get(leaf)
        if memory is None:
            memory = self._leaves[leaf] = self._ticks.array_of(self.packed, leaf).transpose(1, 2, 0)
        memory[...] = value

    def __call__(self, inputs: Sequence[Any]) -> None:
        """Advance the data."""
        self._code.give(inputs, self._n_packed)
        self._code()
