"""What XLA says about compiled code: object files, memory, and the kernels to run.

It is in `CompilationResultProto`, which a serialised executable contains: object files, the kernels
to run one after the other (`ThunkSequenceProto`), what each piece of memory is for
(`BufferAssignmentProto`), and the computation (`HloModuleProto`). The numbers in `number(2)` and
the like are those of fields in these messages.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple, Self

from crazyflow_ros.xla.messages import BufferMessage, literal, varint
from crazyflow_ros.xla.object_code import CannotLoad

_TUPLE = 13  # of the types in `ShapeProto`
_PARAMETER, _CONSTANT = 5, 12  # fields of `BufferAllocationProto`
_KERNEL = 11  # field of `ThunkProto`

_Value = tuple[int, tuple[int, ...]]
"""The result of an instruction, by its id, and the path of a part in it if it is a tuple."""


class Slice(NamedTuple):
    """A part of an allocation of memory."""

    allocation: int
    offset: int
    size: int


class XlaKernel(NamedTuple):
    """A function of an object file."""

    name: str
    groups: tuple[int, int, int]
    """Into how many parts its work is divided; each is a call."""
    arguments: tuple[Slice, ...]
    """What it reads and writes."""


@dataclass(frozen=True)
class CodeDescription:
    """Compiled code for the CPU that consists of kernels. It can be pickled."""

    object_files: tuple[bytes, ...]
    """Contents of the object files."""
    kernels: tuple[XlaKernel, ...]
    """To run one after the other."""
    sizes: tuple[int, ...]
    """Bytes of each allocation of memory."""
    constants: dict[int, bytes]
    """Contents of those that are constants, by their index."""
    arguments: tuple[Slice, ...]
    results: tuple[Slice, ...]

    @classmethod
    def of(cls, serialized: bytes) -> Self:
        """Return the description in a serialised executable.

        Raises:
            CannotLoad: The code consists of more than kernels, or this version of XLA describes it
                differently.
        """
        try:
            return cls._of(serialized)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise CannotLoad(f"an unknown description ({error!r})") from error

    @classmethod
    def _of(cls, serialized: bytes) -> Self:
        size, start = varint(serialized, 0)  # of the part that is not XLA's
        result = BufferMessage(serialized[start + size :]).message(1)
        assignment, module = result.message(2), _Module(result.message(1).message(1))
        allocations = assignment.messages(3)
        if [a.number(1) for a in allocations] != list(range(len(allocations))):
            raise CannotLoad("allocations in another order")
        parameters = {
            a.number(6): Slice(i, 0, a.number(2))
            for i, a in enumerate(allocations)
            if a.number(_PARAMETER)
        }
        buffers = {}
        for buffer in assignment.messages(1):
            defined = buffer.message(3)
            buffers[buffer.number(1)] = defined.number(4), tuple(defined.numbers(3))
        held: dict[_Value, Slice] = {}
        constants: dict[int, bytes] = {}
        for i, allocation in enumerate(allocations):
            for part in allocation.messages(9):
                value = buffers[part.number(1)]
                held[value] = Slice(i, part.number(2), part.number(3))
                if allocation.number(_CONSTANT):
                    constants[i] = literal(module.instruction(value[0]).message(8))
        return cls(
            object_files=tuple(file.content(1) for file in result.messages(8)),
            kernels=tuple(map(_kernel, result.message(6).messages(1))),
            sizes=tuple(allocation.number(2) for allocation in allocations),
            constants=constants,
            arguments=tuple(parameters[i] for i in range(len(parameters))),
            results=tuple(held[module.origin(value, held)] for value in module.results),
        )


def _kernel(thunk: BufferMessage) -> XlaKernel:
    """Return a `KernelThunkProto`."""
    if _KERNEL not in thunk.fields:
        raise CannotLoad(f"a step of kind {thunk.content(1).decode()!r}")
    kernel = thunk.message(_KERNEL)
    groups = kernel.message(2)
    slices = [s.message(1) for s in (*kernel.messages(5), *kernel.messages(6))]
    return XlaKernel(
        kernel.content(1).decode(),
        (groups.number(1), groups.number(2), groups.number(3)),
        tuple(Slice(s.number(3), s.number(1), s.number(2)) for s in slices),
    )


class _Module:
    """The computation, `HloModuleProto`.

    Attributes:
        results: What it returns; the elements, if that is a tuple.
    """

    def __init__(self, module: BufferMessage) -> None:
        self._computations = {c.number(5): c for c in module.messages(3)}
        self._instructions: dict[int, dict[int, BufferMessage]] = {}  # by computation
        main = self._computations[module.number(6)]
        root, shape = main.number(6), main.message(4).message(2)
        paths = [(i,) for i in range(len(shape.each(4)))] if shape.number(2) == _TUPLE else [()]
        self.results: list[_Value] = [(root, path) for path in paths]

    def instruction(self, number: int) -> BufferMessage:
        """Return an instruction; the number contains that of its computation."""
        computation = number >> 32
        known = self._instructions.get(computation)
        if known is None:
            instructions = self._computations[computation].messages(2)
            known = self._instructions[computation] = {i.number(35): i for i in instructions}
        return known[number]

    def origin(self, value: _Value, held: Container[_Value]) -> _Value:
        """Return the value that has memory among those that are the same."""
        while value not in held:
            number, path = value
            instruction = self.instruction(number)
            operands = instruction.numbers(36)
            match instruction.content(2):
                case b"get-tuple-element":
                    value = operands[0], (instruction.number(13), *path)
                case b"tuple":
                    value = operands[path[0]], path[1:]
                case b"call":
                    (called,) = instruction.numbers(38)
                    value = self._computations[called].number(6), path
                case b"while" | b"bitcast" | b"opt-barrier":
                    value = operands[0], path
                case opcode:
                    raise CannotLoad(f"a result of {opcode.decode()!r}")
        return value
