"""`make fly`, in a pseudo terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from paths import ROOT
from ros_client import own_domain

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")

START, ANSWER = 180.0, 60.0  # s
PLACE = re.compile(rb"x +(-?[\d.]+)  y +(-?[\d.]+)  z +(-?[\d.]+) m")


def columns(terminal: int, width: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))


def places(shown: bytes) -> list[bytes]:
    """The whole lines that say where the drone is, without what erases a line.

    Warnings, such as those of a busy machine, are printed in full.
    """
    lines = shown.replace(b"\x1b[K", b"").split(b"\r")[1:-1]
    return [line for line in lines if line.startswith(b"  x")]


def test_keys_fly_the_drone(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "ROS_DOMAIN_ID": str(own_domain("test_keyboard")),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",  # which shells export, and do not change in a program that runs
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "crazyflow_ros.demo.keyboard"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment,
        start_new_session=True,
    )  # fmt: skip
    columns(theirs, 80)
    shown = b""

    def read(seconds: float) -> None:
        nonlocal shown
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.05)[0]:
                shown = (shown + os.read(ours, 65536))[-100_000:]

    def place() -> tuple[float, float, float]:
        x, y, z = PLACE.findall(shown)[-1]
        return float(x), float(y), float(z)

    def until(condition: object, key: bytes, timeout: float = ANSWER) -> None:
        assert callable(condition)
        deadline = time.monotonic() + timeout
        while not (PLACE.search(shown) and condition()):
            assert time.monotonic() < deadline, shown[-2000:].decode()
            assert process.poll() is None, shown[-2000:].decode()
            os.write(ours, key)
            read(0.1)

    try:
        until(lambda: True, b"", START)
        os.write(ours, b"l")
        refusal = b"cf0/land is refused: cf0: land needs a drone in the air, it is idle\r\n"
        until(lambda: refusal in shown, b"")
        os.write(ours, b"t")
        until(lambda: place()[2] > 0.9, b"")
        until(lambda: place()[0] > 0.5, b"w")
        # It stays in one line of the terminal, also after this became narrower.
        columns(theirs, 20)
        before = len(shown)
        until(lambda: any(len(line) < 20 for line in places(shown[before:])), b"")
        before = len(shown)
        until(lambda: len(places(shown[before:])) > 5, b"")
        assert all(len(line) < 20 for line in places(shown[before:]))
        columns(theirs, 80)
        os.write(ours, b"l")
        until(lambda: place()[2] < 0.03, b"")
        os.write(ours, b"q")
        assert process.wait(ANSWER) == 0
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)


def test_it_needs_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crazyflow_ros.demo.keyboard"], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=ANSWER,
    )  # fmt: skip
    assert done.returncode == 2 and "needs a terminal" in done.stderr
