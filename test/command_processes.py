"""Commands of the command line in this process, and Python programs as processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from paths import ROOT

from crazyflow_ros.client import command_line

Done = subprocess.CompletedProcess[str]
TIMEOUT = 120.0  # s, a machine may be slow and busy


def environment(domain: int) -> dict[str, str]:
    """The variables of a process in a ROS domain."""
    return {**os.environ, "ROS_DOMAIN_ID": str(domain), "PYTHONPATH": str(ROOT)}


def run_python(
    domain: int, *arguments: str, timeout: float = TIMEOUT, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end."""
    return subprocess.run(
        [sys.executable, *arguments], env=environment(domain), timeout=timeout, text=True,
        capture_output=True, check=False, cwd=folder,
    )  # fmt: skip


def in_process(
    main: Callable[[Sequence[str]], int], words: Sequence[str], folder: Path = ROOT
) -> Done:
    """Run the function of a program in this process, which is much faster."""
    told, printed = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(printed), redirect_stderr(told):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(words, code, printed.getvalue(), told.getvalue())


def command(words: str, folder: Path = ROOT) -> Done:
    """Carry out a command in this process; the variable ROS_DOMAIN_ID has its domain."""
    return in_process(command_line.main, shlex.split(words), folder)
