"""Functions that the node calls at regular intervals of wall time, or once after a delay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crazyflow_ros.ros.callback_guard import CallbackGuard

PERIOD = 0.1  # s of wall time


class RegularCalls:
    """Functions that share one timer: an executor looks at all timers whenever it wakes up.

    Args:
        guard: Guard of the functions; their exceptions are logged.
    """

    def __init__(self, guard: CallbackGuard) -> None:
        self._guard = guard
        self._calls: list[tuple[int, Callable[[], None]]] = []
        self._once: list[tuple[float, Callable[[], None]]] = []
        self._n_periods = 0

    def add(self, function: Callable[[], object], period: float = PERIOD) -> None:
        """Call a function in the executor's thread at intervals [s], a multiple of `PERIOD`."""
        self._calls.append((round(period / PERIOD), self._guard.on_timer(function)))

    def once(self, delay: float, function: Callable[[], object]) -> None:
        """Call a function once, at the first `PERIOD` after a delay [s]."""
        self._once.append((time.monotonic() + delay, self._guard.on_timer(function)))

    def make(self) -> None:
        """Call the functions that are due; has to be called after each `PERIOD`."""
        now, waiting = time.monotonic(), self._once
        self._once = [(due, call) for due, call in waiting if due > now]
        for due, call in waiting:
            if due <= now:
                call()
        self._n_periods += 1
        for n_periods, call in self._calls:
            if self._n_periods % n_periods == 0:
                call()


class Share:
    """Limits repeated work to a share of wall time in a thread."""

    def __init__(self, share: float) -> None:
        self._share, self._due = share, 0.0

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed."""
        return time.monotonic() >= self._due

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Count the CPU time of the context; on a busy machine much more wall time passes."""
        begin = time.thread_time()
        yield
        self._due = time.monotonic() + (time.thread_time() - begin) / self._share
