"""Processes that handle untrusted input: how they start, and their limits."""

from __future__ import annotations

import ctypes
import json
import logging
import math
import os
import resource
import struct
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import IO, Any

from crazyflow_ros.checks.limits import shown

_PACKAGE = Path(__file__).parents[1]
_MOST_SAID = 300  # characters of the last line of a process
_READ = 1 << 16  # bytes of its output
# Numbers of two of Linux's system calls, the same on all processors, and of an operation.
_CREATE_RULESET, _RESTRICT_SELF, _NO_NEW_PRIVILEGES = 444, 446, 38
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Rights to files that Landlock knows, by its version."""


def program(module: str, *arguments: str) -> dict[str, Any]:
    """Return the arguments of `Popen` for a process that runs a module.

    It finds the packages that this process finds, but nothing in the working folder or beside the
    script that this process runs: a file there with the name of one of Python's modules would be
    imported before the process can be confined.
    """
    landlock()  # warns in this process, whose log is read, if the kernel has none
    script = getattr(sys.modules["__main__"], "__file__", None) or os.curdir
    users = {os.getcwd(), os.path.dirname(os.path.realpath(script))}
    paths = [path for path in map(os.path.abspath, sys.path) if os.path.realpath(path) not in users]
    start = str(Path(__file__).with_name("isolated_start.py"))
    words = [start, json.dumps(paths), str(_PACKAGE), module, *arguments]
    return {
        "args": [sys.executable, "-I", "-S", *words],
        # Each thread that allocates would reserve address space for good, which `confine` limits.
        "env": os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        "cwd": "/",
    }


def last_words(said: IO[bytes]) -> str:
    """Return the last line that a process has written to a pipe, shortened; it has ended."""
    lines = said.read(_READ).decode(errors="replace").split("\n")
    return shown(next((line.strip() for line in reversed(lines) if line.strip()), ""), _MOST_SAID)


def confine(memory: int, seconds: float = math.inf) -> None:
    """Deny this process what its input must not use: memory, time, files, other programs.

    Import everything that it needs before; open files stay open. Without Landlock in the kernel,
    the process can still start programs, and signal the user's processes.

    Args:
        memory: Bytes of address space beyond the present.
        seconds: Processor time from now on, after which SIGXCPU ends the process.

    Raises:
        OSError: The kernel has Landlock, and refuses.
    """
    warnings.simplefilter("ignore")
    with open("/proc/self/statm") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    if version := landlock():
        _isolate(version)
    _limit(resource.RLIMIT_AS, present + memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, 0)
    if seconds < math.inf:
        end = math.ceil(time.process_time() + seconds)
        _limit(resource.RLIMIT_CPU, end, end + 1)  # SIGXCPU, and SIGKILL if that does not help


@cache
def landlock() -> int:
    """Return the version of the kernel's Landlock; 0 if it has none, which the log says once."""
    version = _call(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        text = "processes that read untrusted input have limits, but no Landlock: %s"
        logging.getLogger("crazyflow_ros").info(text, os.strerror(ctypes.get_errno()))
    return max(version, 0)


def _isolate(version: int) -> None:
    """Deny this thread new files, programs, TCP connections and signals to others, for good.

    Raises:
        OSError: The kernel refuses.
    """
    files = next(_FILE_RIGHTS[known] for known in sorted(_FILE_RIGHTS)[::-1] if version >= known)
    rights = [(1 << files) - 1, *[3] * (version >= 4), *[3] * (version >= 6)]
    rules = struct.pack(f"={len(rights)}Q", *rights)  # without an exception to them
    ruleset = _call(_CREATE_RULESET, rules, len(rules), 0)
    if (
        ruleset < 0
        or _library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) < 0
        or _call(_RESTRICT_SELF, ruleset, 0) < 0
    ):
        raise OSError(ctypes.get_errno(), f"Landlock {version}: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)


def _call(number: int, *arguments: Any) -> int:
    return int(_library().syscall(number, *arguments))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _limit(what: int, soft: int, hard: int | None = None) -> None:
    _, present = resource.getrlimit(what)
    allowed = math.inf if present == resource.RLIM_INFINITY else present
    most = (soft, soft if hard is None else hard)
    resource.setrlimit(what, tuple(int(min(each, allowed)) for each in most))  # type: ignore[arg-type]
