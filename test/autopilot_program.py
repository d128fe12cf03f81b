"""Runs a program of an autopilot until the processes that it has started have ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence

from paths import ROOT

T = 300.0  # s, no wait is longer


def output(program: str, words: Sequence[str]) -> str:
    """Return what a program for two drones prints, whose autopilots end with the exit code 7."""
    command = [sys.executable, "-m", "crazyflow_ros", program, "-n", "2", *words]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if sum("ended with the exit code 7" in one for one in said) == 2:
                break
        process.send_signal(signal.SIGTERM)
        said += process.stdout
        assert process.wait(T) == 0
    return "".join(said)
