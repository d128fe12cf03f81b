"""Processes that handle what comes from others: how they start, and their limits."""

from __future__ import annotations

import math
import os
import resource
import sys
import time
import warnings


def program(module: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of a process that runs a module.

    It finds the packages that this process finds.
    """
    packages = os.pathsep.join(map(os.path.abspath, sys.path))
    # Each thread that allocates would reserve address space for good, which `confine` limits.
    own = {"PYTHONPATH": packages, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    return [sys.executable, "-P", "-m", module], os.environ | own


def confine(memory: int, seconds: float = math.inf) -> None:
    """Take away from this process what input must not use: memory, time, and other files.

    What it needs has to be imported before, and what is open stays open.

    Args:
        memory: Bytes of address space beyond the present.
        seconds: Processor time from now on, after which SIGXCPU ends the process.
    """
    warnings.simplefilter("ignore")
    with open("/proc/self/statm") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    _limit(resource.RLIMIT_AS, present + memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, 0)
    if seconds < math.inf:
        end = math.ceil(time.process_time() + seconds)
        _limit(resource.RLIMIT_CPU, end, end + 1)  # SIGXCPU, and SIGKILL if that does not help


def _limit(what: int, soft: int, hard: int | None = None) -> None:
    _, present = resource.getrlimit(what)
    allowed = math.inf if present == resource.RLIM_INFINITY else present
    most = (soft, soft if hard is None else hard)
    resource.setrlimit(what, tuple(int(min(each, allowed)) for each in most))  # type: ignore[arg-type]
