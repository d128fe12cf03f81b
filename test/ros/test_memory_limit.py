"""The limit of the process's memory, in processes of their own."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys

import pytest

GIB = 1 << 30
LIMIT = """
import resource
from crazyflow_ros.ros.memory_limit import advice, limit_memory
limit_memory({limit})
"""


def run(code: str, limit: float = 0.0, *, before: int = resource.RLIM_INFINITY) -> tuple[int, str]:
    """Exit code and output of a process that limits itself, with a limit that it has before."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    done = subprocess.run(
        [sys.executable, "-c", LIMIT.format(limit=limit) + code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (before, most)),
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("limit", "before", "least", "most"),
    [
        (0.0, resource.RLIM_INFINITY, 2, 8),  # by the machine
        (1.5, resource.RLIM_INFINITY, 1.5, 1.5),
        (16.0, resource.RLIM_INFINITY, 16, 16),
        (3.0, 2 * GIB, 2, 2),  # what the system allows
    ],
)
def test_the_limit_is_what_was_given_or_what_there_is(
    limit: float, before: int, least: float, most: float
) -> None:
    code, said = run("print(resource.getrlimit(resource.RLIMIT_DATA)[0])", limit, before=before)
    assert code == 0, said
    assert least <= int(said) / GIB <= most


def test_what_needs_more_fails_with_the_limit_and_its_parameter() -> None:
    code, said = run(
        "import numpy as np\n"
        "try: np.ones(400_000_000)\n"
        "except MemoryError as error: print(f'no{advice(error)}')\n"
        "print(f'other{advice(ValueError())}')",
        2.5,
    )
    assert code == 0, said
    assert said == "no (the limit is 2.5 GiB: parameter memory_limit)\nother\n"


def test_before_cpp_ends_the_process_it_names_the_limit() -> None:
    code, said = run("import ctypes\nctypes.CDLL('libstdc++.so.6')._ZSt9terminatev()", 3.0)
    assert code == -signal.SIGABRT, said
    assert "the limit is 3 GiB: parameter memory_limit" in said
