"""Scripts in simulated time: the simulation waits while a program runs.

The script's process begins with the package `in_script/simulated_time`, which replaces its clocks
and waits. When all its threads wait, it asks to let time run until the earliest deadline.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from math import gcd, inf
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime import InvalidState, PhysicsThread, StepAborted
from crazyflow_ros.scripts.child import Child
from crazyflow_ros.scripts.in_script.simulated_time.channel import (
    FOREVER,
    VARIABLE,
    Advance,
    ChannelReader,
    Datagram,
    Endpoint,
    Reached,
    ScriptSettings,
    answer,
)

FOLDER = Path(__file__).parent / "in_script"
"""What a script in simulated time has on its path."""

_PATIENCE = 10.0  # s of wall time after which it is said what the script waits for
_START = 30.0  # s of wall time that it may take until the script has connected
_SHORTEST, _LOOK = 50e-6, 0.05  # s of wall time between two looks at what takes long
_STRETCH_NS = 1_000_000_000  # after which the script may look around, at most
_TEXT_RATE = 10  # Hz at which texts of drones reach the script, at least
_CHECK = 1.0  # s of wall time between two checks whether the simulation has failed
_ADVICE = "simulated time: only programs in Python are, which must not be started with -I, -E or -S"


class Exchange(Protocol):
    """Takes a script's datagrams to drones, and returns those for the script."""

    def take(self, datagram: Datagram) -> None:
        """Take a datagram of the script."""

    def serve(self, snapshot: Snapshot) -> list[Datagram]:
        """Do what is due at the script's time; return the datagrams it receives now, in order."""

    def due(self) -> int:
        """When `serve` has to be called next [ns]; `FOREVER` if no time is known."""


class _Nobody:
    """The exchange of scripts that send no datagrams."""

    def take(self, datagram: Datagram) -> None:
        del datagram

    def serve(self, snapshot: Snapshot) -> list[Datagram]:
        del snapshot
        return []

    def due(self) -> int:
        return FOREVER


class LockStep:
    """Lets the time of a simulation run as far as a script asks.

    Args:
        physics: The simulation, paused. If others let its time run, it is paused again.
        logger: Logs why time stands still.
        factor: Greatest number of simulated seconds per second; 0 for no limit.

    Attributes:
        exchange: Takes the script's datagrams.
        now: The script's time [ns]; the latest tick that is not later has been simulated. When
            others let the time of the simulation jump, by a reset for example, this one does not.
    """

    def __init__(self, physics: PhysicsThread, logger: Logger, factor: float = 0.0) -> None:
        self._physics, self._logger, self._factor = physics, logger, factor
        self.exchange: Exchange = _Nobody()
        self.now = physics.snapshot.time_ns
        self._begin = self._ticks = physics.snapshot.tick  # counts those that the script asked for
        self._took = 0.0
        self._held = ""  # why time stands still, as far as it is logged

    def serve(self, stream: socket.socket) -> None:
        """Serve a script until it ends.

        Raises:
            ValueError: It has sent what is no message.
            RuntimeError: The simulation has failed.
        """
        began = time.monotonic()
        try:
            with stream, stream.makefile("rb") as file, suppress(ConnectionError):
                self._serve(stream, ChannelReader(file))  # until the script ends, in whatever way
        finally:
            self._took = time.monotonic() - began

    def summary(self) -> Iterator[str]:
        """Yield how long it took and where the drones are."""
        end = self._physics.snapshot
        seconds = (self._ticks - self._begin) / self._physics.freq
        factor = seconds / self._took if self._took else 0.0
        yield f"{seconds:.3f} s of simulated time took {self._took:.2f} s: {factor:.1f} x"
        for name, pos in zip(end.names, end.pos.tolist()):
            yield f"{name} ended at {', '.join(map(repr, pos))} m"

    def _serve(self, stream: socket.socket, reader: ChannelReader) -> None:
        while (message := reader.request()) is not None:
            if isinstance(message, Advance):
                self.advance(message, lambda reached: stream.sendall(answer(reached)))
            elif isinstance(message, Datagram):
                self.now = max(self.now, message.time_ns)
                self.exchange.take(message)
            else:
                self.note(message)

    def advance(self, asked: Advance, reply: Callable[[Reached], object]) -> None:
        """Let time run, and reply."""
        reply(self._advance(asked))

    def note(self, endpoint: Endpoint) -> None:
        """Note a new endpoint of the script."""

    def settle(self) -> None:
        """Wait until the simulation has carried out all requests, also those that take long.

        Raises:
            RuntimeError: The simulation has failed.
        """
        pause = _SHORTEST
        while self._physics.loop.busy:
            self._finish(self._physics.pause())  # after all other requests
            if self._physics.loop.busy:  # something is being compiled
                time.sleep(pause)
                pause = min(2 * pause, _LOOK)

    def _advance(self, asked: Advance) -> Reached:
        """Let time run as far as the script wants, or until it receives something.

        If others do not let time run, return as well, after a moment: the script asks again.
        """
        self.now = max(self.now, asked.now_ns)
        latest = min(asked.until_ns, self.now + _STRETCH_NS)
        while True:
            datagrams = self.exchange.serve(self._physics.snapshot)
            if datagrams or self.now >= latest:
                return Reached(self.now, datagrams)
            goal = min(latest, max(self.exchange.due(), self.now + 1))
            try:
                if not self._run_to(goal):
                    self.now = goal
            except InvalidState as error:
                self._stand_still(f"the script waits: {error}")
                return Reached(self.now, [])

    def _run_to(self, goal: int) -> bool:
        """Advance towards the latest tick up to `goal`; return False if it is reached.

        Raises:
            InvalidState: Others do not let time run.
            RuntimeError: The simulation has failed.
        """
        physics, tick = self._physics, self._physics.snapshot.tick
        period = physics.freq // gcd(physics.freq, _TEXT_RATE)
        last = ((goal + 1) * physics.freq - 1) // 1_000_000_000
        ticks = min(last - self._ticks, period - tick % period)
        if ticks < 1:
            return False
        began = time.monotonic()
        step = physics.step(ticks)
        with suppress(StepAborted):  # by a pause or a reset, which end no script
            self._finish(step)
        self._ticks += step.ticks_done
        self._held = ""
        if self._factor:
            seconds = step.ticks_done / physics.freq / self._factor
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        self.now = max(self.now, self._ticks * 1_000_000_000 // physics.freq)
        return True

    def _stand_still(self, why: str) -> None:
        """Pause the simulation if necessary, log why time stands still, and wait a moment.

        Raises:
            RuntimeError: The simulation has ended.
        """
        was_paused = self._physics.paused
        self._finish(self._physics.pause())
        if not was_paused:
            why = "others let time run, which only the script may: it is paused again"
        if why != self._held:
            self._held = why
            self._logger.warning(f"lock-step: {why}")
        time.sleep(_LOOK)

    def _finish(self, future: Future[Any]) -> None:
        """Wait for the simulation.

        Raises:
            RuntimeError: It has failed.
        """
        while self._physics.failed is None:
            with suppress(TimeoutError):
                future.result(_CHECK)
                return
        raise RuntimeError(f"the simulation has failed: {self._physics.failed!r}")


class ScriptModule(NamedTuple):
    """A module that extends simulated time in a script's process."""

    folder: Path
    """Folder of the module."""
    module: str
    """Its function `begin` is called, see `ScriptSettings`."""
    arguments: Sequence[Any]


class Script:
    """The process of a script. The constructor starts it.

    Args:
        command: Program and arguments.
        logger: Logs what goes wrong.
        ports: UDP ports of the drones.
        address: Network address of the drones.
        environment: Additional environment variables.
        seed: Seed of random numbers that the script does not seed.
        extension: Of `ScriptSettings`.

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
        extension: ScriptModule | None = None,
    ) -> None:
        self._name, self._logger = shlex.join(command), logger
        self._folder = tempfile.TemporaryDirectory(prefix="crazyflow_ros.")
        path = f"{self._folder.name}/time"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(1)
        self._listener.settimeout(_LOOK)
        folders, before = [str(FOLDER)], os.environ.get("PYTHONPATH")
        settings = ScriptSettings(path, address, list(ports), seed, _PATIENCE, folders, before)
        if extension is not None:
            folders.append(str(extension.folder))
            settings = settings._replace(
                extension=extension.module, arguments=tuple(extension.arguments)
            )
        variables = {
            "PYTHONHASHSEED": "0",  # or sets of strings would have another order each time
            **os.environ,
            **(environment or {}),
            "PYTHONPATH": os.pathsep.join([*folders, *filter(None, [before])]),
            VARIABLE: json.dumps(settings._asdict()),
        }
        try:
            self._child = Child(command, variables)
        except OSError:
            self._close()
            raise

    def run(self, lock_step: LockStep) -> int:
        """Let the script run to its end.

        Returns:
            Its exit code, see `Child.wait`; 1 if the simulation failed.
        """
        try:
            stream = self._connect()
            if stream is not None:
                lock_step.serve(stream)
            code = self._child.wait() or 0
            if stream is None:
                self._logger.warning(f"{self._name} has ended, and was never in {_ADVICE}")
        except (RuntimeError, ValueError) as error:
            self._logger.error(f"lock-step: {error}")
            self._child.stop()
            code = 1
        finally:
            self._child.close()
            self._close()
        return code

    def stop(self) -> None:
        """End the script; `run` then returns. From any thread."""
        self.send(signal.SIGTERM)

    def send(self, number: int) -> None:
        """Send the script a signal. From any thread."""
        self._child.send(number)

    def _connect(self) -> socket.socket | None:
        """Wait until the script has connected; return None if it ends before."""
        late = time.monotonic() + _START
        while self._child.wait(0.0) is None:
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

    def _close(self) -> None:
        self._listener.close()
        self._folder.cleanup()
