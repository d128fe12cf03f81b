"""A limit on the memory of the process, so that no message exhausts the machine's memory.

rmw_fastrtps allocates all elements of a list before it reads the first one: a request of four bytes
made it allocate 5 GB. Allocations above the limit fail, mostly in rmw, and the process continues.
"""

from __future__ import annotations

import ctypes
import os
import resource
from contextlib import suppress
from functools import cache
from pathlib import Path

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.ros.messages.outbox import LIBRARY, is_available

_GIB = 1 << 30
_LEAST, _MOST = 2, 8  # GiB, of the default
_LEFT_BEHIND = 64 << 20  # bytes by which a process grows until it gives freed memory back
_SCARCE = 0.9  # of the limit
_PAGE = os.sysconf("SC_PAGE_SIZE")


def limit_memory(gibibytes: float) -> None:
    """Limit the memory that this process may reserve, and programs that it starts.

    Args:
        gibibytes: The limit [GiB]; 0: half of the machine's memory, from 2 to 8 GiB. A lower limit
            of the system stays (`ulimit -d`).
    """
    half = os.sysconf("SC_PHYS_PAGES") * _PAGE / _GIB / 2
    wanted = round((gibibytes or min(max(half, _LEAST), _MOST)) * _GIB)
    present, most = resource.getrlimit(resource.RLIMIT_DATA)
    if present == resource.RLIM_INFINITY or wanted < present:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    _say_before_end()


def advice(error: BaseException) -> str:
    """Return an addition to the message of an error: the limit, if an allocation failed."""
    text = str(error).lower()  # of MuJoCo, XLA and the system
    is_shortage = isinstance(error, MemoryError) or ("allocat" in text and "memory" in text)
    return f" ({_limit()})" if is_shortage else ""


def _limit() -> str:
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return "there is no limit but the machine's"
    return f"the limit is {limit / _GIB:.3g} GiB: parameter memory_limit"


@cache
def _say_before_end() -> bytes:
    """Let C++ name the limit before it ends the process; return the text, to be kept."""
    text = f"C++ ends the process. If it needed more memory (bad_alloc): {_limit()}\n".encode()
    if is_available():
        with suppress(OSError, AttributeError):  # another C++ library
            set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
            ctypes.CDLL(str(LIBRARY)).crazyflow_ros_say_before_end(set_terminate, text)
    return text


class MemoryWatch:
    """Returns memory of large messages to the system, and warns when little is left."""

    def __init__(self, logger: Logger) -> None:
        self._logger, self._before = logger, _used()[0]

    def look(self) -> None:
        """Check how much memory is in use; call it regularly."""
        resident, reserved = _used()
        if resident > self._before + _LEFT_BEHIND:
            with suppress(AttributeError):  # another C library
                ctypes.CDLL(None).malloc_trim(0)
            self._before, reserved = _used()
        if reserved > _SCARCE * resource.getrlimit(resource.RLIMIT_DATA)[0]:
            self._logger.warning(
                f"{reserved / _GIB:.3g} GiB of memory are reserved, and little is left: {_limit()}"
            )


def _used() -> tuple[int, int]:
    """Return the memory in use, and what the limit counts [bytes]."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * _PAGE, int(fields[5]) * _PAGE
