"""A log of the failures in a thread that must go on, its callbacks, and a watchdog for it."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVarTuple

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger

Ts = TypeVarTuple("Ts")

_LOOKS = 4  # in each period without progress after which the thread counts as hanging


@dataclass(frozen=True)
class Failure:
    """Exceptions of one callback."""

    count: int
    error: str
    """The latest exception."""
    time: float
    """Time of the latest one, as `time.monotonic` [s]."""


@dataclass(frozen=True)
class Statistics:
    """Speed and failures of a simulation at one moment."""

    requested_factor: float
    achieved_factor: float
    overruns: int
    stalls: int
    tick: int
    time_ns: int
    """Simulated time of the tick."""
    epoch: int
    paused: bool
    faults: Mapping[str, str]
    """Drones that are out of service until they are reset, and why."""
    failures: Mapping[str, Failure]
    """Callbacks that have failed."""
    stalled: str
    """Activity in which the thread hangs, or empty."""


class Health:
    """Exceptions of callbacks, lost drones, and a watchdog.

    Args:
        logger: Logs everything that goes wrong, recurring messages as a number.
        timeout: Wall time without progress after which the thread counts as hanging [s].

    Attributes:
        doing: Present activity of the thread, empty while it waits on purpose. Set by the thread.
        beats: Counts what the thread has done. Set by the thread.
        faults: Drones that are out of service, and why.
        failures: Failures of callbacks, by name.
        stalled: Activity in which the thread hangs, or empty.
    """

    def __init__(self, logger: Logger, timeout: float) -> None:
        self._logger, self._timeout = ThrottledLogger.of(logger), timeout
        self.doing, self.beats = "", 0
        self.faults: dict[str, str] = {}
        self.failures: dict[str, Failure] = {}
        self.stalled = ""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. From any thread."""
        self._end.set()
        self._logger.close()

    # In the watched thread.

    def call(self, name: str, callback: Callable[..., object], *args: Any) -> None:
        """Call a callback; log its exception."""
        self.doing = name
        try:
            callback(*args)
        except Exception as error:
            self.note_failure(name, error)

    def note_failure(self, name: str, error: Exception) -> None:
        """Record an exception that the thread survives."""
        before, now = self.failures.get(name), time.monotonic()
        count = before.count + 1 if before else 1
        text = f"{type(error).__name__}: {error}"
        self.failures = self.failures | {name: Failure(count, text, now)}
        trace = "".join(traceback.format_exception(error))
        self._logger.error(f"{name} has failed, {count} times so far; time runs on\n{trace}")

    def note_faults(self, faults: dict[str, str]) -> None:
        """Set the drones that are out of service."""
        for name in faults.keys() - self.faults.keys():
            self._logger.error(f"{name}: {faults[name]}")
        self.faults = faults

    def inform(self, text: str) -> None:
        """Log for information."""
        self._logger.info(text)

    def warn(self, text: str) -> None:
        """Log a warning."""
        self._logger.warning(text)

    # In the watchdog's thread.

    def _watch(self) -> None:
        """Count looks, not seconds, because a process that was stopped has not been hanging."""
        before, unchanged = (0, ""), 0
        while not self._end.wait(self._timeout / _LOOKS):
            now = (self.beats, self.doing)
            unchanged = unchanged + 1 if now == before and now[1] else 0
            before = now
            if unchanged >= _LOOKS and not self.stalled:
                self.stalled = now[1]
                self._logger.error(f"no progress for {self._timeout:g} s, hangs in: {now[1]}")
            elif not unchanged and self.stalled:
                self._logger.info(f"progress again, after hanging in: {self.stalled}")
                self.stalled = ""


class Callbacks(Generic[*Ts]):
    """Functions that the physics thread calls; call this object with a function to add it.

    Functions are added before the thread starts, and must not wait for a request. If one fails, the
    failure is logged and the others are still called.

    Args:
        what: What these functions are, in messages.
        health: Logs failures.

    Attributes:
        callbacks: The functions.
    """

    def __init__(self, what: str, health: Health) -> None:
        self._what, self._health = what, health
        self.callbacks: list[Callable[[*Ts], object]] = []

    def __call__(self, callback: Callable[[*Ts], object]) -> None:
        """Add a function."""
        self.callbacks.append(callback)

    def tell(self, *news: *Ts) -> None:
        """Call all functions. Physics thread."""
        for callback in self.callbacks:
            self._health.call(self._what, callback, *news)
