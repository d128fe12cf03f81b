"""Messages about compilations: how long they took in earlier starts, and how long they last."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file
from crazyflow_ros.xla.compiled_files import CompiledFiles, opened
from crazyflow_ros.xla.fingerprint import machine, source
from crazyflow_ros.xla.kept_files import Warn

_FILE = "start_up.json"
_TYPICAL = "takes 10 to 60 s"
_UNKNOWN = 0.0
_MOST_BYTES, _MOST_TIMES = 100_000, 500
_PERIOD = 10.0  # s of wall time between two lines about a compilation


class StartUp:
    """Times of earlier starts on this machine.

    Args:
        files: The compilation cache, whose folder also stores the times; None if there is none.
        info: Receives the log messages.
    """

    def __init__(self, files: CompiledFiles | None, info: Warn) -> None:
        self._files, self._info = files, info
        self._folder = None if files is None else files.folder

    @classmethod
    def of_cache(cls, info: Warn) -> Self:
        """Return the times that are stored with the open compilation cache, if there is one."""
        return cls(opened(), info)

    @contextmanager
    def compiling(self, *what: object) -> Iterator[None]:
        """Log the expected duration of a compilation, and store the actual one.

        Args:
            what: Everything that the compiled code depends on.
        """
        times, setup, code = self._times(), _name(what), _name((source(), machine(), *what))
        if code in times:
            doing = "loading compiled code"
            time_taken = f", which took {_rounded(times[code])} the last time"
            self._info(f"{doing}{time_taken if times[code] else ''}")
        else:
            doing = "compiling the physics"
            known = f"took {_rounded(times[setup])} the last time" if setup in times else _TYPICAL
            self._info(f"compiling, which {known}; the result is cached for later starts")
        before, began = self._n_compiled(), time.monotonic()
        with telling(doing, self._info):
            yield
        took = time.monotonic() - began
        news = {setup: took, code: _UNKNOWN} if self._n_compiled() > before else {code: took}
        if self._folder is None:
            return
        with suppress(OSError):
            times = self._times()  # again: other simulators have started meanwhile
            latest = [*(entry for entry in times.items() if entry[0] not in news), *news.items()]
            content = json.dumps(dict(latest[-_MOST_TIMES:])).encode()
            write_file(self._folder / _FILE, content, mode=0o600)

    def _times(self) -> dict[str, float]:
        if self._folder is None:
            return {}
        with suppress(OSError, ValueError, RecursionError):
            with open_file(self._folder / _FILE, _MOST_BYTES) as file:
                times = json.load(file)
            if isinstance(times, dict) and all(type(t) in (int, float) for t in times.values()):
                return times
        return {}

    def _n_compiled(self) -> int:
        return 0 if self._files is None else self._files.n_compiled


@contextmanager
def telling(doing: str, info: Warn) -> Iterator[None]:
    """Log every ten seconds what is being done, and for how long, until the context ends.

    Args:
        doing: What is being done.
        info: Receives the log messages.
    """
    began, done = time.monotonic(), threading.Event()

    def tell() -> None:
        while not done.wait(_PERIOD):
            info(f"still {doing}, for {time.monotonic() - began:.0f} s so far")

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


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
