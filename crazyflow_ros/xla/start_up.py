"""Predictions of the start-up time from earlier starts, stored with the compiled code."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import jax

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file
from crazyflow_ros.xla.code_cache import ENTRIES, Warn
from crazyflow_ros.xla.compiled_files import surroundings

_FILE = "start_up.json"
_TYPICAL = "takes 10 to 60 s"
_UNKNOWN = 0.0
_MOST_BYTES, _MOST_TIMES = 100_000, 500


class StartUp:
    """Times of earlier starts on this machine.

    Args:
        folder: The compilation cache, which also stores the times; None if there is none.
        info: Receives the log messages.
    """

    def __init__(self, folder: Path | None, info: Warn) -> None:
        self._folder, self._info = folder, info

    @classmethod
    def of_cache(cls, info: Warn) -> Self:
        """Return the times that are stored with JAX's compilation cache, if it is in use."""
        kept = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        return cls(Path(kept) if kept else None, info)

    @contextmanager
    def compiling(self, *what: object) -> Iterator[None]:
        """Log the expected duration of a compilation, and store the actual one.

        Args:
            what: Everything that the compiled code depends on.
        """
        times, setup, code = self._times(), _name(what), _name((surroundings(), *what))
        if code in times:
            time_taken = f", which took {_rounded(times[code])} the last time"
            self._info(f"loading compiled code{time_taken if times[code] else ''}")
        else:
            known = f"took {_rounded(times[setup])} the last time" if setup in times else _TYPICAL
            self._info(f"compiling, which {known}; the result is cached for later starts")
        before, began = self._count(), time.monotonic()
        yield
        took = time.monotonic() - began
        news = {setup: took, code: _UNKNOWN} if self._count() > before else {code: took}
        for name in news:
            times.pop(name, None)  # the latest ones come last
        if self._folder is None:
            return
        with suppress(OSError):
            latest = dict(list((times | news).items())[-_MOST_TIMES:])
            write_file(self._folder / _FILE, json.dumps(latest).encode())

    def _times(self) -> dict[str, float]:
        if self._folder is None:
            return {}
        with suppress(OSError, ValueError, RecursionError):
            with open_file(self._folder / _FILE, _MOST_BYTES) as file:
                times = json.load(file)
            if isinstance(times, dict) and all(type(t) in (int, float) for t in times.values()):
                return times
        return {}

    def _count(self) -> int:
        """Count the cached functions."""
        if self._folder is None:
            return 0
        with suppress(OSError):
            return sum(1 for _ in self._folder.glob(ENTRIES))
        return 0


def _name(what: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


def process_age() -> float:
    """Return the time [s] since the process started; 0 if the system does not provide it."""
    with suppress(OSError, ValueError, IndexError):
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        began = int(after_name[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began
    return 0.0


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 2 else f"{seconds:.1f} s"
