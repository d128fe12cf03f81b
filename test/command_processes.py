"""Python programs and commands of the command line as processes, in a ROS domain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from paths import ROOT

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
