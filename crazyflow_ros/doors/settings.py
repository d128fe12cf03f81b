"""The doors that packages offer, and what a door knows when it opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Protocol, cast

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.entry_points import load
from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.runtime import Door, SimulationConfig

GROUP = "crazyflow_ros.doors"
"""Group of the entry points."""


@dataclass(frozen=True)
class DoorContext:
    """The simulation whose drones a door lets others fly."""

    drones: tuple[str, ...]
    """Their names, in the order of all arrays; they stay the same."""
    drone_model: str
    freq: int
    """Physics ticks per second."""
    seed: int
    """Seed of all random numbers."""
    logger: Logger
    """For what the user has to know: who has connected, who is lost, what is refused."""

    @classmethod
    def of(cls, config: SimulationConfig, drones: Sequence[str], logger: Logger) -> DoorContext:
        """Return the context of a simulation with this configuration."""
        return cls(tuple(drones), config.drone_model, config.freq, config.seed, logger)


class DoorSettings(Protocol):
    """Settings of a door: a dataclass that can be built without arguments.

    Its fields are `name: Annotated[type, Spec(...)] = default`. In the node they are the parameters
    `<entry point>.<field>`.
    """

    def open(self, context: DoorContext) -> Door:
        """Open the door, before the simulation starts.

        Raises:
            ValueError: A setting is not usable; the message names it.
            OSError: A socket or a file is not usable.
        """


@dataclass(frozen=True, kw_only=True)
class WorldOrigin:
    """Settings of doors to autopilots, which have to know where the world is on earth."""

    latitude: Annotated[float, Spec("Latitude of the world's origin [degrees]", -90, 90)] = (
        47.397742
    )
    longitude: Annotated[float, Spec("Its longitude [degrees]", -180, 180)] = 8.545594
    altitude: Annotated[float, Spec("Its altitude above sea level [m]", -2000, 19_000)] = 488.0


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
