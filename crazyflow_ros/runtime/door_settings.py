"""The doors that packages offer, and what a door knows when it opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from crazyflow_ros.checks.entry_points import load
from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.runtime.door import Door

GROUP = "crazyflow_ros.doors"
"""Group of the entry points."""


@dataclass(frozen=True)
class DoorContext:
    """The simulation whose drones a door lets others fly."""

    drones: tuple[str, ...]
    """Names of the drones, in the order of all arrays; they stay the same."""
    drone_model: str
    freq: int
    """Physics ticks per second."""
    seed: int
    """Seed of all random numbers."""
    logger: Logger
    """Logs what the user has to know: who has connected, who is lost, what is refused."""

    @property
    def n_rotors(self) -> int:
        """Number of rotors of a drone."""
        return len(rotors_of(self.drone_model))

    @classmethod
    def of(cls, config: SimulationConfig, drones: Sequence[str], logger: Logger) -> DoorContext:
        """Return the context of a simulation with this configuration."""
        return cls(tuple(drones), config.drone_model, config.freq, config.seed, logger)


class DoorSettings(Protocol):
    """Settings of a door: a dataclass that can be built without arguments.

    Its fields are `name: Annotated[type, Spec(...)] = default`. In the node they are the parameters
    `<entry point>.<field>`. Settings of a door whose autopilots a build can start also have the
    method of `StartsAutopilots`.
    """

    def open(self, context: DoorContext) -> Door:
        """Open the door, before the simulation starts.

        Raises:
            ValueError: A setting is not usable; the message names it.
            OSError: A socket or a file is not usable.
        """


@dataclass(frozen=True)
class AutopilotStart:
    """What a door has to know to start the autopilots behind it."""

    build: Path
    """Path of the autopilots' build, as given."""
    work: Path
    """Folder for the working folders of the autopilots."""
    config: SimulationConfig
    drones: tuple[str, ...]
    """Names of the drones that the door flies, in its order; each has its own autopilot."""
    logger: Logger
    wipe: bool = False
    """Whether the folders of earlier autopilots are removed first."""


class Autopilots(Protocol):
    """Processes of autopilots, one for each drone of a door."""

    def start(self) -> Iterator[str]:
        """Start one after another, once the door is open, and yield what the user has to know.

        Raises:
            OSError: A process cannot be started, or its folder cannot be written.
        """

    def close(self) -> None:
        """End all of them."""


@runtime_checkable
class StartsAutopilots(Protocol):
    """Settings of a door that can start the autopilots behind it."""

    def autopilots(self, start: AutopilotStart) -> Autopilots:
        """Return the autopilots, which do not run yet.

        Raises:
            ValueError: There is no usable build, or a setting does not fit one.
            OSError: A file cannot be written.
        """


def door_settings(name: str) -> type[DoorSettings]:
    """Return the settings of a door by the name of its entry point.

    Raises:
        ValueError: No package offers such a door, two do, or it is broken; the message names door
            and package.
    """
    settings = load(GROUP, name, "door", "a dataclass with a method open", _opens)
    return cast(type[DoorSettings], settings)


def _opens(settings: object) -> bool:
    return isinstance(settings, type) and is_dataclass(settings) and hasattr(settings, "open")
