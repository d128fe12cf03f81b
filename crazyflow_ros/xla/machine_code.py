"""Compiled functions called without JAX: the machine code that XLA made, in memory of its own.

For JAX, each call is a transaction on buffers that other threads and devices may hold: it takes 10
us or more for a handful of arrays, however short the function. Called directly, it takes one. The
machine code is that of the executable, so that results are the same to the bit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.stages import Compiled

from crazyflow_ros.xla.code_description import CodeDescription, Slice, XlaKernel
from crazyflow_ros.xla.object_code import CannotLoad, ObjectCode

_JAXLIB = version("jaxlib")
_LOGGER = logging.getLogger("crazyflow_ros")
_KNOWN = ("0.10.",)
"""Versions of jaxlib whose kernels are known to take arguments as `MachineCode` passes them. That
cannot be tried: where it is wrong, the process ends."""
_ALIGNMENT = 64  # bytes
_MOST_CALLS = 64


def described(compiled: Compiled) -> CodeDescription:
    """Return the description of a compiled function.

    Raises:
        CannotLoad: There is none in this version of JAX, or see `CodeDescription`.
    """
    if not _JAXLIB.startswith(_KNOWN):
        raise CannotLoad(f"machine code of jaxlib {_JAXLIB}")
    try:
        executable: Any = compiled.runtime_executable()
        serialized: bytes = executable.serialize()
    except Exception as error:  # from a version of JAX in which this is different
        raise CannotLoad(f"{type(error).__name__}: {str(error)[:200]}") from error
    return CodeDescription.of(serialized)


class MachineCode:
    """A compiled function with memory of its own.

    Not thread-safe: all calls use the same memory.

    Args:
        compiled: The function, compiled for the CPU.
        description: Its description, if it is known.

    Attributes:
        arguments: The memory of the arguments, in the order of `jax.tree.leaves`, to write to.
        results: The memory of the results, in that order. A result that overwrites an argument,
            which was donated, is the same array.

    Raises:
        CannotLoad: Only JAX can call it.
    """

    def __init__(self, compiled: Compiled, description: CodeDescription | None = None) -> None:
        description = description or described(compiled)
        arguments, results = jax.tree.leaves(compiled.args_info), jax.tree.leaves(compiled.out_info)
        self._memory = memory = _Memory(description)
        self.arguments = [memory.array(*pair) for pair in _pairs(arguments, description.arguments)]
        self.results = [memory.array(*pair) for pair in _pairs(results, description.results)]
        own = {a.ctypes.data: a for a in self.arguments}
        self.results = [own.get(a.ctypes.data, a) for a in self.results]
        overwritten = {id(a) for a in self.results}
        self._stays = [id(a) not in overwritten for a in self.arguments]
        self._given: list[Any] = [None] * len(arguments)
        self._code = ObjectCode(description.object_files)
        self._tables: list[np.ndarray] = []
        calls = [call for kernel in description.kernels for call in self._calls_of(kernel)]
        self._run = self._code.sequence(calls)

    @classmethod
    def tried(
        cls,
        compiled: Compiled,
        arguments: Sequence[Any],
        description: CodeDescription | None = None,
    ) -> Self | None:
        """Return the function if its results are those that JAX gets from it; None otherwise.

        Args:
            compiled: The function, compiled for the CPU.
            arguments: Arguments, which are only read.
            description: Its description, if it is known.
        """
        try:
            code = cls(compiled, description)
        except CannotLoad as error:
            _LOGGER.debug("a compiled function is called by JAX: %s", error)
            return None
        given = jax.tree.map(np.array, list(arguments))
        code.give(jax.tree.leaves(given))
        code()
        for own, result in zip(code.results, jax.tree.leaves(compiled(*given)), strict=True):
            if own.tobytes() != np.asarray(result).tobytes():
                _LOGGER.warning(
                    "machine code of jaxlib %s gives other results when it is called without JAX: "
                    "JAX calls it, which is slower",
                    _JAXLIB,
                )
                return None
        return code

    def __call__(self) -> None:
        """Compute the results."""
        if self._run():
            raise RuntimeError("a kernel of XLA failed")

    def give(self, values: Sequence[Any], first: int = 0) -> None:
        """Copy values to the memory of arguments, from the `first` one on, if they are new."""
        for i, value in enumerate(values, first):
            if value is not self._given[i] and value is not self.arguments[i]:
                self.arguments[i][...] = value
                is_same = self._stays[i] and isinstance(value, Array)  # the next time
                self._given[i] = value if is_same else None

    def _calls_of(self, kernel: XlaKernel) -> Iterator[tuple[str, int]]:
        """Yield name and address of the arguments, see `XLA_CPU_KernelCallFrame`."""
        rows = [(self._memory.address(part), part.size) for part in kernel.arguments]
        groups = [max(n, 1) for n in kernel.groups]
        if np.prod(groups) > _MOST_CALLS:
            raise CannotLoad(f"the kernel {kernel.name} is divided into {groups} parts")
        table, shape = np.array(rows, np.uint64), np.array(groups, np.uint64)
        for group in np.ndindex(*groups):
            index = np.array(group, np.uint64)
            addresses = shape.ctypes.data, index.ctypes.data, len(rows), table.ctypes.data
            frame = np.array(addresses, np.uint64)
            self._tables += [table, shape, index, frame]
            yield kernel.name, frame.ctypes.data


class _Memory:
    """The memory of all allocations."""

    def __init__(self, description: CodeDescription) -> None:
        # With a gap, because kernels may read whole vectors.
        ends = np.cumsum(
            [0, *(size + -size % _ALIGNMENT + _ALIGNMENT for size in description.sizes)]
        )
        self._bytes = np.zeros(int(ends[-1]) + _ALIGNMENT, np.uint8)
        first = -self._bytes.ctypes.data % _ALIGNMENT
        self._starts = [first + int(end) for end in ends]
        for i, content in description.constants.items():
            if len(content) != description.sizes[i]:
                raise CannotLoad("a constant of another size")
            start = self._starts[i]
            self._bytes[start : start + len(content)] = np.frombuffer(content, np.uint8)

    def address(self, part: Slice) -> int:
        """Return the address of a slice."""
        return self._bytes.ctypes.data + self._starts[part.allocation] + part.offset

    def array(self, info: Any, part: Slice) -> np.ndarray:
        """Return a view of a slice as an array of given shape and dtype."""
        if jnp.issubdtype(info.dtype, jax.dtypes.extended):
            raise CannotLoad(f"an array of {info.dtype}")
        dtype = np.dtype(info.dtype)
        if dtype.itemsize * int(np.prod(info.shape)) != part.size:
            raise CannotLoad(f"an array of {part.size} bytes has the shape {info.shape}")
        start = self._starts[part.allocation] + part.offset
        return self._bytes[start : start + part.size].view(dtype).reshape(info.shape)


def _pairs(infos: Sequence[Any], parts: Sequence[Slice]) -> list[tuple[Any, Slice]]:
    if len(infos) != len(parts):
        raise CannotLoad(f"{len(infos)} arrays in {len(parts)} pieces of memory")
    return list(zip(infos, parts))
