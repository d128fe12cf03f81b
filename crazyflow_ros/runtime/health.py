"""What goes wrong in a thread that has to go on: it is told, and survived."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

_LOG_PERIOD = 1.0  # s between two entries about the same callback
_LOOKS = 4  # in each period without progress after which the thread is taken to hang


class Logger(Protocol):
    """Python's, or that of a ROS node."""

    def info(self, message: str) -> object:
        """Something to know."""

    def warning(self, message: str) -> object:
        """Something to look after."""

    def error(self, message: str) -> object:
        """Something that does not work."""


@dataclass(frozen=True)
class Failure:
    """Exceptions of one callback."""

    count: int
    error: str
    """The latest."""
    time: float
    """Of the latest, as `time.monotonic` [s]."""


class Health:
    """Exceptions of callbacks, lost drones, and whether the thread gets on.

    Args:
        logger: Is told.
        timeout: Without progress for so long [s of wall time] the thread is taken to hang.

    Attributes:
        doing: What the watched thread is at, empty while it waits on purpose. Set by the thread.
        beats: Rises with everything that the thread has done. Set by the thread.
        faults: Drones that are out of service, and why.
        failures: Of callbacks, by name.
        stalled: What the thread hangs in, or nothing.
    """

    def __init__(self, logger: Logger, timeout: float) -> None:
        self._logger, self._timeout = logger, timeout
        self.doing, self.beats = "", 0
        self.faults: dict[str, str] = {}
        self.failures: dict[str, Failure] = {}
        self.stalled = ""
        self._logged: dict[str, float] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer. From any thread."""
        self._end.set()

    # In the watched thread.

    def call(self, name: str, callback: Callable[..., object], *args: Any) -> None:
        """Call something that may fail."""
        self.doing = name
        try:
            callback(*args)
        except Exception as error:
            self.note_failure(name, error)

    def note_failure(self, name: str, error: Exception) -> None:
        """A callback, or something else that the thread survives, has failed."""
        before, now = self.failures.get(name), time.monotonic()
        count = before.count + 1 if before else 1
        text = f"{type(error).__name__}: {error}"
        self.failures = self.failures | {name: Failure(count, text, now)}
        if now - self._logged.get(name, -_LOG_PERIOD) >= _LOG_PERIOD:
            self._logged[name] = now
            trace = "".join(traceback.format_exception(error))
            self._logger.error(f"{name} has failed, {count} times so far; time runs on\n{trace}")

    def note_faults(self, faults: dict[str, str]) -> None:
        """These drones are out of service, and no others."""
        for name in faults.keys() - self.faults.keys():
            self._logger.error(f"{name}: {faults[name]}")
        self.faults = faults

    def inform(self, text: str) -> None:
        """Something to know."""
        self._logger.info(text)

    def warn(self, text: str) -> None:
        """Something that somebody might wonder about."""
        self._logger.warning(text)

    # In a thread of its own.

    def _watch(self) -> None:
        """Count looks, not seconds: a process that was stopped does not hang when it goes on."""
        before, unchanged = (0, ""), 0
        while not self._end.wait(self._timeout / _LOOKS):
            now = (self.beats, self.doing)
            unchanged = unchanged + 1 if now == before and now[1] else 0
            before = now
            if unchanged >= _LOOKS and not self.stalled:
                self.stalled = now[1]
                self._logger.error(f"no progress for {self._timeout:g} s, hangs in: {now[1]}")
            elif not unchanged and self.stalled:
                self._logger.info(f"the thread goes on after: {self.stalled}")
                self.stalled = ""
