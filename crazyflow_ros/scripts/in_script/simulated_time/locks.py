"""Locks that threads in simulated time wait for; conditions, events and queues are made of them."""

from __future__ import annotations

import _thread
import queue
import sys
import threading
from collections import deque
from contextlib import suppress
from types import FunctionType, ModuleType, TracebackType
from typing import Any, ClassVar

from .kernel import LOOK, PATIENCE, Kernel, ScriptThread, Wait

_allocate = _thread.allocate_lock


class Lock:
    """A lock. Those who wait for it get it in the order in which they came.

    Attributes:
        kernel: The threads of this process.
    """

    __slots__ = ("__weakref__", "_lock", "_waits")
    kernel: ClassVar[Kernel]

    def __init__(self) -> None:
        self._lock, self._waits = _allocate(), deque[Wait]()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire it, as Python's own does."""
        kernel = Lock.kernel
        kernel.looks += 1
        if kernel.looks > PATIENCE:
            kernel.rest()
        if timeout != -1 and (not blocking or timeout < 0):
            return self._lock.acquire(blocking, timeout)  # which refuses it
        if self._lock.acquire(False):
            return True
        task = kernel.task()
        if task is None:
            return self._lock.acquire(blocking, timeout)
        if not blocking:
            kernel.looks += LOOK
            return False
        return self._wait(task, None if timeout < 0 else kernel.now + nanoseconds(timeout))

    def _wait(self, task: ScriptThread, deadline: int | None) -> bool:
        wait = Wait(task)
        self._waits.append(wait)
        if self._lock.acquire(False):  # threads in wall time may release it at any moment
            wait.claim()
            return True
        try:
            Lock.kernel.block(task, wait, deadline)
        except BaseException:
            if wait.woken:
                self.release()
            raise
        if not wait.woken:
            with suppress(ValueError):  # `release` has removed it
                self._waits.remove(wait)
        return wait.woken

    def release(self) -> None:
        """Release it, as Python's own does."""
        while self._waits:
            if Lock.kernel.wake(self._waits.popleft()):
                return  # the lock is that thread's now
        self._lock.release()
        if self._waits and self._lock.acquire(False):
            self.release()

    def locked(self) -> bool:
        """Whether anybody has it."""
        Lock.kernel.looks += LOOK
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._lock, self._waits = _allocate(), deque()

    def __repr__(self) -> str:
        state = "locked" if self._lock.locked() else "unlocked"
        return f"<{state} lock at {id(self):#x}>"

    acquire_lock, release_lock, locked_lock = acquire, release, locked


def install(kernel: Kernel) -> None:
    """Replace Python's locks."""
    Lock.kernel = kernel
    Lock.__module__, Lock.__qualname__, Lock.__name__ = "_thread", "lock", "lock"
    reentrant = threading._PyRLock  # type: ignore[attr-defined]
    replace(_thread, allocate_lock=Lock, allocate=Lock, LockType=Lock, RLock=reentrant)
    replace(threading, _allocate_lock=Lock, Lock=Lock, _CRLock=None)
    # Looks that the library takes for itself cost nothing: how often it does is not the script's.
    replace(threading, _time=lambda: kernel.now * 1e-9)
    replace(queue, time=lambda: kernel.now * 1e-9)
    replace(queue, SimpleQueue=queue._PySimpleQueue)  # type: ignore[attr-defined]


def nanoseconds(seconds: float) -> int:
    """Return a duration in ns; at least 1, so that who waits again and again gets further."""
    return max(1, round(seconds * 1e9)) if seconds > 0 else 0


def replace(module: Any, **names: Any) -> None:
    """Replace names of a module or a class.

    Raises:
        AttributeError: It has no such name: this version of Python is not supported.
    """
    for name, value in names.items():
        if not hasattr(module, name):
            raise AttributeError(f"Python {sys.version.split()[0]} has no {module.__name__}.{name}")
        # As an attribute of a class, a function of C is no method; nor must be its substitute.
        is_function = isinstance(module, ModuleType) and isinstance(value, FunctionType)
        setattr(module, name, staticmethod(value) if is_function else value)
