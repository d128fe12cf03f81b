"""`make fly`, in a pseudo terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from keyboard_pilot import ANSWER, START, Keyboard
from ros_client import own_domain

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")


def places(shown: bytes) -> list[bytes]:
    """The whole lines that say where the drone is, without what erases a line.

    Warnings, such as those of a busy machine, are printed in full.
    """
    lines = shown.replace(b"\x1b[K", b"").split(b"\r")[1:-1]
    return [line for line in lines if line.startswith(b"  x")]


def test_keys_fly_the_drone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crazyflow_ros.client.keyboard"]
    with Keyboard(command, own_domain("test_keyboard"), tmp_path) as pilot:
        pilot.until(lambda: True, timeout=START)
        pilot.type(b"l")
        refusal = b"cf0/land is refused: cf0: land needs a drone in the air, it is idle\r\n"
        pilot.until(lambda: refusal in pilot.shown)
        pilot.type(b"t")
        pilot.until(lambda: pilot.place[2] > 0.9)
        pilot.until(lambda: pilot.place[0] > 0.5, b"w")
        # It stays in one line of the terminal, also after this became narrower.
        pilot.widen(20)
        before = len(pilot.shown)
        pilot.until(lambda: any(len(line) < 20 for line in places(pilot.shown[before:])))
        before = len(pilot.shown)
        pilot.until(lambda: len(places(pilot.shown[before:])) > 5)
        assert all(len(line) < 20 for line in places(pilot.shown[before:]))
        pilot.widen(80)
        pilot.type(b"l")
        pilot.until(lambda: pilot.place[2] < 0.03)
        pilot.type(b"q")
        assert pilot.process.wait(ANSWER) == 0


def test_it_needs_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crazyflow_ros.client.keyboard"], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=ANSWER,
    )  # fmt: skip
    assert done.returncode == 2 and "needs a terminal" in done.stderr
