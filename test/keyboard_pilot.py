"""A program in a pseudo terminal, and somebody at its keyboard."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

START, ANSWER = 180.0, 60.0  # s
_PLACE = re.compile(rb"x +(-?[\d.]+)  y +(-?[\d.]+)  z +(-?[\d.]+) m")


class Keyboard:
    """A program that flies a drone by the keyboard, such as `make fly`.

    Args:
        command: What to run.
        domain: ROS domain.
        folder: In which it runs.

    Attributes:
        process: The process.
        shown: What it has written lately.
    """

    def __init__(self, command: Sequence[str], domain: int, folder: Path) -> None:
        self._ours, self._theirs = pty.openpty()
        environment = {
            **os.environ,
            "ROS_DOMAIN_ID": str(domain),
            "COLUMNS": "80",  # which shells export, and do not change in a program that runs
            "MAKEFLAGS": "",
        }
        self.widen(80)
        self.process = subprocess.Popen(
            command, stdin=self._theirs, stdout=self._theirs, stderr=self._theirs, cwd=folder,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def widen(self, columns: int) -> None:
        """Give the terminal a width."""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def type(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._ours, key)

    @property
    def place(self) -> tuple[float, float, float]:
        """Where the drone is, as the terminal says."""
        x, y, z = _PLACE.findall(self.shown)[-1]
        return float(x), float(y), float(z)

    def until(
        self, condition: Callable[[], object], key: bytes = b"", timeout: float = ANSWER
    ) -> None:
        """Hold a key until there is a place in the terminal and a condition holds."""
        deadline = time.monotonic() + timeout
        while not (_PLACE.search(self.shown) and condition()):
            assert time.monotonic() < deadline, self.shown[-2000:].decode()
            assert self.process.poll() is None, self.shown[-2000:].decode()
            self.type(key)
            self._read(0.1)

    def _read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self._ours], [], [], 0.05)[0]:
                self.shown = (self.shown + os.read(self._ours, 65536))[-100_000:]
