"""Commands that a user of the page may type, in the way in which he has started the page."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

_PACKAGE = "crazyflow_ros"


def command_of(program: str = "") -> str:
    """Return the command that starts a program of this package; without a name, the simulator.

    It works in the folder where the page was started, in an environment that is activated or not.
    """
    if Path(sys.argv[0]).parent.parts[-2:] == ("lib", _PACKAGE):  # where `ros2 run` looks
        return f"ros2 run {_PACKAGE} {program or 'simulator'}"
    python = Path(sys.orig_argv[0])
    if python.is_relative_to(here := Path.cwd()):
        python = python.relative_to(here)
    return shlex.join(filter(None, [os.fspath(python), "-m", _PACKAGE, program]))


def page_of(name: str) -> str:
    """Return the command that shows the simulator with a full name on a page."""
    namespace, _, node = name.rpartition("/")
    where = ["--namespace", namespace] if namespace else []
    return f"{command_of('view')} {shlex.join(['--node', node, *where])}"
