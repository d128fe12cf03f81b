"""Functions of object files in the memory of this process.

XLA's object files refer to nothing but themselves and some functions of the C library, so that no
linker is needed. Only 64-bit x86 with the System V calling convention is known.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

_PAGE, _ALIGNMENT = 4096, 64  # bytes
_RELOCATABLE, _X86_64 = 1, 62  # kind of file, kind of processor
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8  # kinds of sections
_WRITABLE, _LOADED = 1, 2  # flags of sections
_ABSOLUTE, _RELATIVE, _TO_CALL, _RELATIVE_64 = 1, 2, 4, 24  # kinds of relocations
_FUNCTION, _GLOBAL = 2, 1  # kinds of symbols
_MEMORY = ("memcpy", "memmove", "memset")
_NUMBERS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor fma
fmod hypot log log10 log1p log2 nearbyint pow remainder rint round sin sinh sqrt tan tanh trunc
"""
_LIBRARY = {*_MEMORY, *_NUMBERS.split(), *(f"{name}f" for name in _NUMBERS.split())}
"""Functions of the C library, of which a process has one, so that XLA calls the same ones."""


class CannotLoad(Exception):
    """An object file needs something that is not known here."""


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


# Calls functions one after the other until one of them returns an error. As XLA does for its
# kernels, it flushes denormal numbers to zero and rounds to nearest meanwhile.
_SEQUENCE = bytes.fromhex(
    "53"  # push rbx
    "4154"  # push r12
    "4883ec18"  # sub rsp, 24
    "4889fb"  # mov rbx, rdi: the table
    "4c8b27"  # mov r12, [rdi]: the number of functions
    "0fae5c2408"  # stmxcsr [rsp + 8]
    "8b442408"  # mov eax, [rsp + 8]
    "0d40800000"  # or eax, 0x8040: flush to zero, denormals are zero
    "25ff9fffff"  # and eax, ~0x6000: round to nearest
    "8944240c"  # mov [rsp + 12], eax
    "0fae54240c"  # ldmxcsr [rsp + 12]
    "31c0"  # xor eax, eax
    "4d85e4"  # loop: test r12, r12
    "7412"  # jz end
    "4883c310"  # add rbx, 16
    "488b3b"  # mov rdi, [rbx]: the argument
    "ff5308"  # call [rbx + 8]
    "49ffcc"  # dec r12
    "4885c0"  # test rax, rax
    "74e9"  # jz loop
    "0fae542408"  # end: ldmxcsr [rsp + 8]
    "4883c418"  # add rsp, 24
    "415c"  # pop r12
    "5b"  # pop rbx
    "c3"  # ret
)
_SEQUENCE_TYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # releases Python's lock


class ObjectCode:
    """Loaded object files. The memory is freed with this object.

    Args:
        files: Contents of the object files.

    Raises:
        CannotLoad: The machine or something in a file is unknown, or memory cannot be executed.
    """

    def __init__(self, files: Sequence[bytes]) -> None:
        if sys.platform != "linux" or platform.machine() != "x86_64":
            raise CannotLoad(f"machine code of {sys.platform} on {platform.machine()}")
        self._functions: dict[str, int] = {}
        self._tables: list[Any] = []
        parsed = [_ObjectFile(content) for content in files]
        at = len(_SEQUENCE) + -len(_SEQUENCE) % _PAGE
        try:
            self._memory = mmap.mmap(-1, at + sum(file.size for file in parsed), mmap.MAP_PRIVATE)
        except OSError as error:
            raise CannotLoad(f"no memory ({error.strerror})") from error
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._memory[: len(_SEQUENCE)] = _SEQUENCE
        for file in parsed:
            self._memory[at : at + file.size], functions = file.linked(self._start + at)
            self._functions |= functions
            at += file.size
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        if protect(self._start, len(self._memory), mmap.PROT_READ | mmap.PROT_EXEC):
            raise CannotLoad("memory cannot be made executable")

    def sequence(self, calls: Sequence[tuple[str, int]]) -> Callable[[], int | None]:
        """Return a function that calls functions one after the other.

        Args:
            calls: Name and argument of each function, which returns a pointer: null, or an error.

        Returns:
            A function that returns the first error, or None. It works while this object exists.

        Raises:
            CannotLoad: No object file has a function of that name.
        """
        table = (ctypes.c_uint64 * (2 + 2 * len(calls)))(len(calls), 0)
        for i, (name, argument) in enumerate(calls, 1):
            if name not in self._functions:
                raise CannotLoad(f"the function {name!r} is missing")
            table[2 * i], table[2 * i + 1] = argument, self._functions[name]
        self._tables.append(table)
        return partial(_SEQUENCE_TYPE(self._start), ctypes.addressof(table))


class _ObjectFile:
    """An object file.

    Attributes:
        size: Bytes of memory that it needs.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        try:
            self._read()
        except (struct.error, IndexError, ValueError) as error:
            raise CannotLoad(f"a damaged object file ({error})") from error

    def _read(self) -> None:
        content = self._content
        kind, machine = struct.unpack_from("<HH", content, 16)
        if content[:6] != b"\x7fELF\x02\x01" or kind != _RELOCATABLE or machine != _X86_64:
            raise CannotLoad("an object file for another kind of machine")
        (table,) = struct.unpack_from("<Q", content, 40)
        entry, n, _ = struct.unpack_from("<HHH", content, 58)
        self._sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", content, table + i * entry))
            for i in range(n)
        ]
        self._places: dict[int, int] = {}  # of the loaded sections, by index
        at = 0
        for i, section in enumerate(self._sections):
            if section.flags & _LOADED:
                if section.flags & _WRITABLE or section.alignment > _ALIGNMENT:
                    raise CannotLoad("variables, or a section with another alignment")
                at += -at % max(section.alignment, 1)
                self._places[i] = at
                at += section.size
        self.size = at + -at % _ALIGNMENT

    def linked(self, start: int) -> tuple[bytes, dict[str, int]]:
        """Return the contents of the memory from an address on, and the addresses of functions."""
        memory = bytearray(self.size)
        for i, place in self._places.items():
            section = self._sections[i]
            if section.kind != _NO_BITS:
                memory[place : place + section.size] = self._of(section)
        functions: dict[str, int] = {}
        for section in self._sections:
            if section.kind == _RELOCATIONS and section.info in self._places:
                self._relocate(memory, section, start)
            if section.kind == _SYMBOLS:
                for name, kind, address in self._symbols(section, start):
                    if kind == (_GLOBAL << 4 | _FUNCTION) and address is not None:
                        functions[name] = address
        return bytes(memory), functions

    def _of(self, section: _Section) -> bytes:
        return self._content[section.offset : section.offset + section.size]

    def _symbols(self, section: _Section, start: int) -> list[tuple[str, int, int | None]]:
        """Return name, kind and address of each symbol."""
        names, symbols = self._of(self._sections[section.link]), []
        for at in range(0, section.size, 24):
            name, kind, _, index, value, _ = struct.unpack_from("<IBBHQQ", self._of(section), at)
            text = names[name : names.index(b"\0", name)].decode()
            address = None
            if index in self._places:
                address = start + self._places[index] + value
            symbols.append((text, kind, address))
        return symbols

    def _relocate(self, memory: bytearray, section: _Section, start: int) -> None:
        """Write the addresses that a section refers to."""
        symbols = self._symbols(self._sections[section.link], start)
        base, content = self._places[section.info], self._of(section)
        for at in range(0, section.size, 24):
            offset, info, addend = struct.unpack_from("<QQq", content, at)
            name, _, address = symbols[info >> 32]
            target = (_of_library(name) if address is None else address) + addend
            place = base + offset
            distance = target - (start + place)
            try:
                kind = info & 0xFFFFFFFF
                if kind == _ABSOLUTE:
                    struct.pack_into("<Q", memory, place, target)
                elif kind in (_RELATIVE, _TO_CALL):
                    struct.pack_into("<i", memory, place, distance)
                elif kind == _RELATIVE_64:
                    struct.pack_into("<q", memory, place, distance)
                else:
                    raise CannotLoad(f"a relocation of kind {kind}")
            except struct.error as error:
                raise CannotLoad(f"{name or 'a section'} is too far away") from error


def _of_library(name: str) -> int:
    if name not in _LIBRARY:
        raise CannotLoad(f"the function {name!r}")
    try:
        library = ctypes.CDLL(None if name in _MEMORY else "libm.so.6")
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except (OSError, AttributeError) as error:
        raise CannotLoad(f"the function {name!r} ({error})") from error
