"""Scripts in simulated time: a program runs, and the simulation waits while it does.

The script's process begins with the package `in_script/simulated_time`, which replaces its clocks
and waits. When all its threads wait, it asks to let time run until the earliest deadline.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from math import gcd, inf
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.lockstep.in_script.simulated_time.channel import (
    FOREVER,
    VARIABLE,
    Advance,
    Datagram,
    Reached,
    Reader,
    Settings,
    answer,
)
from crazyflow_ros.runtime import PhysicsThread
from crazyflow_ros.runtime.health import Logger

FOLDER = Path(__file__).parent / "in_script"
"""What a script in simulated time has on its path."""

_PATIENCE = 10.0  # s of wall time after which it is said what the script waits for
_START = 30.0  # s of wall time that it may take until the script has connected
_SHORTEST, _LOOK = 50e-6, 0.05  # s of wall time between two looks at what takes long
_STRETCH_NS = 1_000_000_000  # after which the script may look around, at most
_TEXT_RATE = 10  # Hz at which texts of drones reach the script, at least
_CHECK = 1.0  # s of wall time between two checks whether the simulation has failed
_ASK, _NO_RANDOM_ADDRESSES = 0xFFFFFFFF, 0x0040000  # arguments of personality(2)
_ADVICE = (
    "simulated time: only programs in Python are, which must not be started with -I, -E or -S"
)


class Exchange(Protocol):
    """What takes a script's datagrams to drones, and has some for the script."""

    def take(self, datagram: Datagram) -> None:
        """Take a datagram of the script."""

    def serve(self, snapshot: Snapshot) -> list[Datagram]:
        """Do what is due at the script's time; return what it receives now, in order."""

    def due(self) -> int:
        """When `serve` has to be called next [ns]; `FOREVER` if no time is known."""


class _Nobody:
    """Of scripts that send no datagrams."""

    def take(self, datagram: Datagram) -> None:
        del datagram

    def serve(self, snapshot: Snapshot) -> list[Datagram]:
        del snapshot
        return []

    def due(self) -> int:
        return FOREVER


class LockStep:
    """Lets the time of a simulation run as far as a script asks for.

    Args:
        physics: The simulation, paused; nobody else lets its time run.
        factor: Simulated seconds per second, at most; 0 for as many as possible.

    Attributes:
        exchange: Takes the script's datagrams.
        now: The script's time [ns]; the simulation is at the latest tick that is not later.
    """

    def __init__(self, physics: PhysicsThread, factor: float = 0.0) -> None:
        self._physics, self._factor = physics, factor
        self.exchange: Exchange = _Nobody()
        self.now = physics.snapshot.time_ns

    def serve(self, stream: socket.socket) -> None:
        """Serve a script until it ends.

        Raises:
            ValueError: It has sent what is no message.
            RuntimeError: The simulation has failed.
        """
        with stream, stream.makefile("rb") as file:
            reader = Reader(file)
            while (message := reader.request()) is not None:
                if isinstance(message, Advance):
                    stream.sendall(answer(self._advance(message)))
                else:
                    self.now = max(self.now, message.time_ns)
                    self.exchange.take(message)

    def settle(self) -> None:
        """Wait until the simulation has carried out all requests, also those that take long.

        Raises:
            RuntimeError: The simulation has failed.
        """
        pause = _SHORTEST
        while self._physics.busy:
            self._finish(self._physics.pause())  # after all other requests
            if self._physics.busy:  # something is being compiled
                time.sleep(pause)
                pause = min(2 * pause, _LOOK)

    def _advance(self, asked: Advance) -> Reached:
        """Let time run as far as the script wants, or until it receives something."""
        self.now = max(self.now, asked.now_ns)
        latest = min(asked.until_ns, self.now + _STRETCH_NS)
        while True:
            datagrams = self.exchange.serve(self._physics.snapshot)
            if datagrams or self.now >= latest:
                return Reached(self.now, datagrams)
            goal = min(latest, max(self.exchange.due(), self.now + 1))
            if not self._run_to(goal):
                self.now = goal

    def _run_to(self, goal: int) -> bool:
        """Advance to the latest tick that is not later, or part of the way; return whether."""
        physics, tick = self._physics, self._physics.snapshot.tick
        period = physics.freq // gcd(physics.freq, _TEXT_RATE)
        last = ((goal + 1) * physics.freq - 1) // 1_000_000_000
        ticks = min(last, (tick // period + 1) * period) - tick
        if ticks < 1:
            return False
        began = time.monotonic()
        self._finish(physics.step(ticks))
        if self._factor:
            time.sleep(max(0.0, began + ticks / physics.freq / self._factor - time.monotonic()))
        self.now = max(self.now, physics.snapshot.time_ns)
        return True

    def _finish(self, future: Future[Any]) -> None:
        """Wait for the simulation.

        Raises:
            RuntimeError: It has failed.
        """
        while not wait([future], _CHECK).done and self._physics.failed is None:
            pass
        if self._physics.failed is not None:
            raise RuntimeError(f"the simulation has failed: {self._physics.failed!r}")
        future.result()


class Script:
    """The process of a script. Its constructor starts it.

    Args:
        command: Program and arguments.
        logger: Logs what goes wrong.
        ports: UDP ports of the drones.
        address: Network address of the drones.
        environment: Additional environment variables.
        seed: Seed of random numbers that the script does not seed.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        logger: Logger,
        ports: Sequence[int] = (),
        address: str = "127.0.0.1",
        environment: Mapping[str, str] | None = None,
        seed: int = 0,
    ) -> None:
        self._name, self._logger = shlex.join(command), logger
        self._folder = tempfile.TemporaryDirectory(prefix="crazyflow_ros.")
        path = f"{self._folder.name}/time"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(1)
        self._listener.settimeout(_LOOK)
        settings = Settings(path, address, list(ports), seed, _PATIENCE)
        folders = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
        variables = {
            "PYTHONHASHSEED": "0",  # or sets of strings would have another order each time
            **os.environ,
            **(environment or {}),
            "PYTHONPATH": os.pathsep.join(folders),
            VARIABLE: json.dumps(settings._asdict()),
        }
        try:
            with _fixed_addresses():
                self._process = subprocess.Popen(command, env=variables)
        except OSError:
            self._close()
            raise

    def run(self, lock_step: LockStep) -> int:
        """Let it run to its end. Signals to this process are passed on to it. Main thread only.

        Returns:
            Its exit code, as a shell gives it: 128 and the number of the signal that ended it.
        """
        signals = (signal.SIGINT, signal.SIGTERM)
        handlers = {number: signal.signal(number, self._pass_on) for number in signals}
        try:
            stream = self._connect()
            if stream is not None:
                lock_step.serve(stream)
            code = self._process.wait()
            if stream is None:
                self._logger.warning(f"{self._name} has ended, and was never in {_ADVICE}")
        except (RuntimeError, ValueError) as error:
            self._logger.error(f"lock-step: {error}")
            self._process.terminate()
            self._process.wait()
            code = 1
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            self._close()
        return code if code >= 0 else 128 - code

    def _connect(self) -> socket.socket | None:
        """Wait until the script has connected; return None if it ends before."""
        late = time.monotonic() + _START
        while self._process.poll() is None:
            try:
                stream, _ = self._listener.accept()
            except TimeoutError:
                if time.monotonic() > late:
                    late = inf
                    self._logger.warning(f"{self._name} is not in {_ADVICE}")
            else:
                stream.setblocking(True)
                return stream
        return None

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        """Pass a signal on, unless a terminal has sent it to the script, too."""
        with suppress(OSError):
            if number == signal.SIGINT and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp():
                return
        self._process.send_signal(number)

    def _close(self) -> None:
        self._listener.close()
        self._folder.cleanup()


@contextmanager
def _fixed_addresses() -> Iterator[None]:
    """Let processes that the calling thread starts have objects at the same addresses each time.

    The order of a set of objects depends on them. Where the system does not allow it, that order is
    another one each time.
    """
    personality = ctypes.CDLL(None).personality
    before = personality(_ASK)
    personality(before | _NO_RANDOM_ADDRESSES)
    try:
        yield
    finally:
        personality(before)
