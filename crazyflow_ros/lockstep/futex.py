"""Linux futexes between processes, and the memory barrier that goes with them, from Python."""

from __future__ import annotations

import ctypes
import os
import platform

_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # of the system call
_WAIT, _WAKE, _WAKE_OP = 0, 1, 5
_ADD_ONE = (1 << 28) | (1 << 12)  # operation of WAKE_OP: add 1; wake nobody else, unless it was 0
_ALL = 2**31 - 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _system_call(library: ctypes.CDLL) -> ctypes._NamedFuncPointer:
    function = library.syscall
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    function.argtypes += [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    return function


# Sleeping lets other threads of Python run; waking takes half a microsecond and doesn't, for to get
# the interpreter's lock back from a busy thread takes longer.
_sleeping = _system_call(ctypes.CDLL(None))
_waking = _system_call(ctypes.PyDLL(None))


class Futex:
    """A 32 bit number in shared memory that processes wait for.

    Args:
        address: Of the number; it has to stay mapped.

    Raises:
        OSError: This is not Linux on a processor whose system calls are known.
    """

    def __init__(self, address: int) -> None:
        machine = platform.machine()
        if platform.system() != "Linux" or machine not in _NUMBERS:
            raise OSError(f"shared memory with controllers needs Linux, got {os.uname().sysname} "
                          f"on {machine}; known are {', '.join(_NUMBERS)}")  # fmt: skip
        self._number, self._address = _NUMBERS[machine], address
        self._value = ctypes.c_uint32.from_address(address)
        self._timeout = _Timespec()
        self._timeout_address = ctypes.addressof(self._timeout)

    @property
    def value(self) -> int:
        """The number."""
        return self._value.value

    def wait(self, value: int, seconds: float) -> None:
        """Sleep until the number isn't `value`, or somebody wakes, but not longer than `seconds`.

        For one thread at a time.
        """
        self._timeout.seconds, rest = divmod(max(0, int(seconds * 1e9)), 1_000_000_000)
        self._timeout.nanoseconds = rest
        _sleeping(self._number, self._address, _WAIT, value, self._timeout_address, None, 0)

    def add(self) -> None:
        """Add 1 and wake all who wait.

        The kernel does the addition: Python has no atomic one. It is ordered after all earlier
        stores of this thread and before all later ones, also on processors that reorder stores:
        Linux implements it as a read-modify-write with a full barrier.
        """
        _waking(self._number, self._address, _WAKE_OP, _ALL, None, self._address, _ADD_ONE)

    def wake(self) -> None:
        """Wake all who wait, to look around."""
        _waking(self._number, self._address, _WAKE, _ALL, None, None, 0)


_fence_word = ctypes.c_uint32()
_fence_futex = Futex(ctypes.addressof(_fence_word)) if platform.machine() != "x86_64" else None


def fence() -> None:
    """Keep loads before and after in their order, between this thread and other processors.

    An x86 never exchanges two loads. Others need an instruction, which the kernel lends us.
    """
    if _fence_futex is not None:
        _fence_futex.add()
