"""A lock that measures how long it is held."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import numpy as np

_HISTORY = 256


class TimedLock:
    """Re-entrant lock for `with` statements, which records its latest hold times.

    Args:
        prepare: Called by a thread that wants the lock, before it waits for the lock.
    """

    def __init__(self, prepare: Callable[[], None] = lambda: None) -> None:
        self._prepare = prepare
        self._lock = threading.RLock()
        self._depth = 0
        self._owner = 0
        self._since = 0
        self._count = 0
        self._holds = np.zeros(_HISTORY)  # s, ring buffer

    def __enter__(self) -> None:
        if not self.held:
            self._prepare()
        self._acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._release()

    @contextmanager
    def unprepared(self) -> Iterator[None]:
        """Hold the lock without calling `prepare`."""
        self._acquire()
        try:
            yield
        finally:
            self._release()

    def _acquire(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._owner = threading.get_ident()
            self._since = time.perf_counter_ns()

    def _release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holds[self._count % _HISTORY] = (time.perf_counter_ns() - self._since) * 1e-9
            self._count += 1
            self._owner = 0
        self._lock.release()

    @property
    def held(self) -> bool:
        """Whether the calling thread holds the lock."""
        return self._owner == threading.get_ident()

    def hold_times(self) -> np.ndarray:
        """Return the latest hold times [s], at most 256, in no particular order."""
        with self._lock:
            return self._holds[: self._count].copy()
