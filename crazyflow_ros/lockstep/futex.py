"""Linux futexes between processes, and the corresponding memory barrier, from Python."""

from __future__ import annotations

import ctypes
import os
import platform

_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # of the system call
_WAIT, _WAKE, _WAKE_OP = 0, 1, 5
# Operation of WAKE_OP: add 1; wake a second address only if it was 0.
_ADD_ONE = (1 << 28) | (1 << 12)
_ALL = 2**31 - 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _system_call(library: ctypes.CDLL) -> ctypes._NamedFuncPointer:
    function = library.syscall
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
    function.argtypes += [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    return function


# Waiting releases the interpreter's lock. Waking does not: it takes half a microsecond, and taking
# the lock back from a busy thread takes longer.
_sleeping = _system_call(ctypes.CDLL(None))
_waking = _system_call(ctypes.PyDLL(None))


class Futex:
    """A 32 bit number in shared memory that processes wait for.

    Args:
        address: Address of the number, which must stay mapped.

    Raises:
        OSError: The operating system is not Linux, or the processor's system calls are not known.
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
        """The present value."""
        return self._value.value

    def wait(self, value: int, seconds: float) -> None:
        """Sleep until the value is not `value`, a wake-up, or for `seconds`.

        Only one thread at a time may wait.
        """
        self._timeout.seconds, rest = divmod(max(0, int(seconds * 1e9)), 1_000_000_000)
        self._timeout.nanoseconds = rest
        _sleeping(self._number, self._address, _WAIT, value, self._timeout_address, None, 0)

    def add(self) -> None:
        """Add 1 and wake all waiters.

        The kernel adds, because Python has no atomic addition. The addition is ordered after all
        earlier stores of this thread and before all later ones, also on processors that reorder
        stores: Linux implements it as a read-modify-write with a full barrier.
        """
        _waking(self._number, self._address, _WAKE_OP, _ALL, None, self._address, _ADD_ONE)

    def wake(self) -> None:
        """Wake all waiters without changing the value."""
        _waking(self._number, self._address, _WAKE, _ALL, None, None, 0)


_fence_word = ctypes.c_uint32()
_fence_futex = Futex(ctypes.addressof(_fence_word)) if platform.machine() != "x86_64" else None


def fence() -> None:
    """Order the loads before and after, as seen by other processors.

    x86 never reorders two loads. Other processors need an instruction, which a system call
    executes.
    """
    if _fence_futex is not None:
        _fence_futex.add()
