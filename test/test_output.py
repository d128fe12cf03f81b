"""Output that nobody reads ends a program without a word."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from paths import ROOT

from crazyflow_ros.output import UNREAD, quiet_if_unread

TIMEOUT = 60.0  # s


@pytest.mark.parametrize(
    "words",
    [
        ["crazyflow_ros", "--help"],
        ["crazyflow_ros", "takeoff", "--help"],
        ["crazyflow_ros.demo", "--help"],
        ["crazyflow_ros.crazyflie", "--help"],
        ["crazyflow_ros.learn", "--help"],
        ["crazyflow_ros.view", "--help"],
    ],
)
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    """What is printed is only written when the process ends, unless it is much."""
    reads, writes = os.pipe()
    os.close(reads)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", *words], stdout=writes, stderr=subprocess.PIPE, text=True,
            cwd=ROOT, env=buffered, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (UNREAD, "")


@pytest.mark.parametrize(("code", "exit_code"), [(None, 0), (0, 0), (2, 2)])
def test_exit_codes_are_kept(code: int | None, exit_code: int) -> None:
    assert quiet_if_unread(lambda: code) == exit_code
