"""Functions that the node calls at regular intervals of wall time."""

from __future__ import annotations

from collections.abc import Callable

from crazyflow_ros.ros.callback_guard import CallbackGuard

PERIOD = 0.1  # s of wall time


class RegularCalls:
    """Functions that share one timer, because rcl warns about many.

    Args:
        guard: Guard of the functions; their exceptions are logged.
    """

    def __init__(self, guard: CallbackGuard) -> None:
        self._guard = guard
        self._calls: list[tuple[int, Callable[[], None]]] = []
        self._n_periods = 0

    def add(self, function: Callable[[], object], period: float = PERIOD) -> None:
        """Call a function in the executor's thread at intervals [s], a multiple of `PERIOD`."""
        self._calls.append((round(period / PERIOD), self._guard.on_timer(function)))

    def make(self) -> None:
        """Call the functions that are due; has to be called after each `PERIOD`."""
        self._n_periods += 1
        for n_periods, call in self._calls:
            if self._n_periods % n_periods == 0:
                call()
