"""Autopilots that are started from a build, a process for each drone of their door."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.runtime.door_settings import AutopilotStart

_CONSOLE = "console.log"  # file in the folder of a process that receives what it prints
# setpriv is part of util-linux. An autopilot may keep a core busy for ever after its simulator was
# killed.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_ENDING = 3.0  # s from a polite signal to one that nobody survives


@dataclass(frozen=True)
class Autopilot:
    """An autopilot that flies the drones of a door, and can be started from a build."""

    name: str
    """Name of the program; also begins the names of drones and folders."""
    title: str
    """Name in messages."""
    first_port: int
    """Port of instance 0."""
    ports: int
    """Number of ports from one instance to the next."""
    freq: int
    """Default of the physics ticks per second."""
    program: str
    """Path of the executable in a build."""
    advice: str
    """How to make a build, for messages."""
    connects: Callable[[int, int], str]
    """Returns a text about who connects where, from the port and the number of an instance."""
    needs: tuple[str, ...] = ()
    """Paths of what a build has to contain besides the executable."""
    model: str = "hb_x500"
    """Default of the drone model."""
    pace: str = "in lock-step"
    """How it flies, for the description of the program."""

    def instance_at(self, port: int) -> int:
        """Return the instance with a port.

        Raises:
            ValueError: No instance has it.
        """
        instance, rest = divmod(port - self.first_port, self.ports)
        if instance < 0 or rest:
            steps = f", plus a multiple of {self.ports}" if self.ports > 1 else ""
            raise ValueError(
                f"port must be at least {self.first_port}{steps} with a build, which is that of "
                f"{self.title}'s instance 0, got {port}"
            )
        return instance

    def instance_near(self, port: int) -> int:
        """Return the instance with a port, the last one below that port, or 0."""
        return max(0, (port - self.first_port) // self.ports)

    def who_connects(self, port: int, drone: int) -> str:
        """Return a text about who connects where.

        Args:
            port: Port of the first drone.
            drone: Index of the drone.
        """
        return self.connects(port + drone * self.ports, self.instance_near(port) + drone)


class AutopilotBuild(ABC):
    """A build of an autopilot and the processes started from it: the `Autopilots` of a door.

    Args:
        autopilot: What is built.
        port: Port of the first drone.
        start: The simulation, and where the build is.

    Raises:
        ValueError: There is no usable build, or no instance has the port.
    """

    def __init__(self, autopilot: Autopilot, port: int, start: AutopilotStart) -> None:
        self._autopilot, self._port, self._start = autopilot, port, start
        self._first = autopilot.instance_at(port)
        build = start.build.resolve()
        for path in (build / part for part in (autopilot.program, *autopilot.needs)):
            if not path.exists():
                raise ValueError(
                    f"build: {shown_path(start.build)} has no {autopilot.title}: there is no "
                    f"{shown_path(path)}; {autopilot.advice}"
                )
        self._program = build / autopilot.program
        if not os.access(self._program, os.X_OK):
            program = shown_path(self._program)
            raise ValueError(f"build: {program} cannot be run; {autopilot.advice}")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ends = threading.Event()

    @abstractmethod
    def _command(self, instance: int, folder: Path) -> tuple[Sequence[str | Path], dict[str, str]]:
        """Return the command that starts an instance in its folder, and its own variables."""

    def start(self) -> Iterator[str]:
        """See `Autopilots`; yields who connects where and where each process prints.

        A process does not outlive the thread that starts it, where the machine has setpriv.
        """
        name, title = self._autopilot.name, self._autopilot.title
        for i, drone in enumerate(self._start.drones):
            yield f"{drone}: {self._autopilot.who_connects(self._port, i)}"
            folder = self._start.work / f"{name}_{self._first + i}"
            console = folder / _CONSOLE
            if self._start.wipe and console.is_file():  # it belongs to an earlier process
                shutil.rmtree(folder)
            folder.mkdir(parents=True, exist_ok=True)
            command, variables = self._command(self._first + i, folder)
            dies = _DIES_WITH_US if shutil.which(_DIES_WITH_US[0]) else ()
            with console.open("wb") as output:
                process = subprocess.Popen(
                    [*dies, *command],
                    cwd=folder,
                    env=os.environ | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for this process, which ends the other one
                )
            self._processes.append(process)
            watched = folder.name, process, console
            threading.Thread(target=self._watch, args=watched, name=name, daemon=True).start()
            yield f"{drone}: {title} prints to {console}"

    def _watch(self, name: str, process: subprocess.Popen[bytes], console: Path) -> None:
        code = process.wait()
        if not self._ends.is_set():
            how = f"by the signal {-code}" if code < 0 else f"with the exit code {code}"
            self._start.logger.error(
                f"{name}: {self._autopilot.title} has ended {how}: see {shown_path(console)}, and "
                "start it again, or this program"
            )

    def close(self) -> None:
        """End all processes."""
        self._ends.set()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def connectable(address: str) -> str:
    """Return where a process on this machine reaches a socket that listens on an address."""
    return "127.0.0.1" if address == "0.0.0.0" else address
