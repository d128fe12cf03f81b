"""Forces and contacts that act on drones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from crazyflow_ros.checks.entry_points import load
from crazyflow_ros.drones import load_drone

if TYPE_CHECKING:
    from crazyflow_ros.dynamics.forces.external import External

    Build: TypeAlias = Callable[[str | Sequence[str], float], External]

__all__ = ["SAG", "force_of", "rest_height"]

GROUP = "crazyflow_ros.forces"
"""Group of the entry points that build forces."""
SAG = 0.25e-3
"""Depth at which a point rests in the floor, so that the next tick also finds the contact [m]."""


def force_of(name: str) -> Build:
    """Return the function that builds a force from one drone or several and a step frequency [Hz].

    Raises:
        ValueError: See `entry_points.load`.
    """
    build: Build = load(GROUP, name, "force", "a function of drone and step frequency", callable)
    return build


def rest_height(drone: str) -> float:
    """Return the height of the centre of mass of a drone that stands on the floor, m."""
    return float(-load_drone(drone)["geometry"]["foot_z"] - SAG)


MODULES = ("aerodynamics", "external", "floor")
"""Modules that extensions may import, with all their public names."""
