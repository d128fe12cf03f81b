"""Autopilots that are started from a build, a process for each drone of their door."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crazyflow_ros.doors.processes import CONSOLE
from crazyflow_ros.runtime.door_settings import AutopilotStart


class AutopilotBuild(Protocol):
    """A build of an autopilot, and the processes that were started from it."""

    def start(self, instance: int) -> Path:
        """Start the process of an instance, and return the file with what it prints.

        Raises:
            OSError: It cannot be started, or its folder cannot be written.
        """

    def close(self) -> None:
        """End all processes."""


@dataclass(frozen=True)
class Autopilot:
    """An autopilot with a door, and processes that can be started."""

    name: str
    """Of the program, and in names of drones and folders."""
    title: str
    """In messages."""
    first_port: int
    """Port of instance 0."""
    ports: int
    """From one instance to the next."""
    freq: int
    """Default of the physics ticks per second."""
    connects: Callable[[int, int], str]
    """Says for a port and an instance who connects where."""
    model: str = "hb_x500"
    """Default of the drone model."""
    pace: str = "in lock-step"
    """How it flies, in the description."""

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
        """Return the instance with a port, or else the last one below it, or 0."""
        return max(0, (port - self.first_port) // self.ports)

    def who_connects(self, port: int, drone: int) -> str:
        """Say who connects where.

        Args:
            port: Port of the first drone.
            drone: Index of the drone.
        """
        return self.connects(port + drone * self.ports, self.instance_near(port) + drone)


class StartedAutopilots:
    """The `Autopilots` of a door.

    Args:
        autopilot: What they are.
        port: Port of the first drone.
        start: The simulation, and where the build is.
        build: Returns the build; raises ValueError if there is none, and OSError if a file cannot
            be written.

    Raises:
        ValueError: There is no build, or the port is not that of an instance.
        OSError: A file cannot be written.
    """

    def __init__(
        self,
        autopilot: Autopilot,
        port: int,
        start: AutopilotStart,
        build: Callable[[AutopilotStart], AutopilotBuild],
    ) -> None:
        self._autopilot, self._port, self._start = autopilot, port, start
        self._first = autopilot.instance_at(port)
        self._build = build(start)

    def start(self) -> Iterator[str]:
        """See `Autopilots`; say who connects where, and who prints where."""
        for i, drone in enumerate(self._start.drones):
            yield f"{drone}: {self._autopilot.who_connects(self._port, i)}"
            if self._start.wipe:
                _wipe(self._start.work / f"{self._autopilot.name}_{self._first + i}")
            console = self._build.start(self._first + i)
            yield f"{drone}: {self._autopilot.title} prints to {console}"

    def close(self) -> None:
        """End all processes."""
        self._build.close()


def _wipe(folder: Path) -> None:
    """Remove the folder of an earlier process; others, which have no console, stay."""
    if (folder / CONSOLE).is_file():
        shutil.rmtree(folder)
