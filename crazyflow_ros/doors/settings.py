"""The doors that packages offer, and what a door knows when it opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Protocol, cast

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.runtime import Door, SimulationConfig
from crazyflow_ros.throttled_logger import Logger

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


def names() -> list[str]:
    """Return the names of the doors that installed packages offer."""
    return sorted({found.name for found in entry_points(group=GROUP)})


def door_settings(name: str) -> type[DoorSettings]:
    """Return the settings of a door by the name of its entry point.

    Raises:
        ValueError: No package offers such a door, two do, or it is broken; the message names door
            and package.
    """
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        known = names()
        raise ValueError(
            unknown("door", name, known) if known else f"no package offers the door {name!r}"
        )
    if len(found) > 1:
        raise ValueError(
            f"several packages offer a door {name!r}: {', '.join(map(package_of, found))}"
        )
    try:
        settings = found[0].load()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{package_of(found[0])}: the door {name!r} cannot be loaded: {cause}"
        ) from error
    if not (isinstance(settings, type) and is_dataclass(settings) and hasattr(settings, "open")):
        what = "has to be a dataclass with a method open"
        raise ValueError(f"{package_of(found[0])}: the door {name!r} {what}, got {found[0].value}")
    return cast(type[DoorSettings], settings)


def package_of(entry: EntryPoint) -> str:
    """Return the package that an entry point is of, for messages."""
    dist = entry.dist
    return f"the package {dist.name} {dist.version}" if dist else f"the module {entry.module}"
