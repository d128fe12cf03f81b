"""Recorded flights from their rotor speeds alone, without controllers."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.flight_logs.motion import in_the_air
from crazyflow_ros.identification.open_loop import APART, OpenLoop, open_loop_errors
from crazyflow_ros.reality.report import markdown

_SHOWN = (0.1, 0.5)  # s
_HEAD = ("flight", "from", *(f"after {seconds:g} s, cm" for seconds in _SHOWN), *(
    f"after {seconds:g} s, rad" for seconds in _SHOWN
))  # fmt: skip


def open_loop(log: FlightLog, drone: str, mass: float | None = None) -> OpenLoop:
    """Return the errors of a flight from its rotor speeds, or from duty cycles and voltage.

    Args:
        log: The flight.
        drone: Name of a drone, or path of its folder.
        mass: kg; by default that of the drone.

    Raises:
        ValueError: The flight is too short, or lacks what tells the speeds of the rotors.
    """
    params = Params.create(drone)
    if mass is not None:
        params = params.replace(mass=jnp.full_like(params.mass, mass))
    return open_loop_errors(in_the_air(log), params, load_drone(drone))


def table(found: Sequence[OpenLoop]) -> str:
    """Return a row for each flight, then the medians of those with the same source."""
    rows = [_row(each.name, each.source, [each]) for each in found]
    for source in dict.fromkeys(each.source for each in found):
        rows.append(_row("**median**", source, [each for each in found if each.source == source]))
    return markdown(_HEAD, rows)


def _row(name: str, source: str, found: Sequence[OpenLoop]) -> list[str]:
    shown = [round(seconds / APART) - 1 for seconds in _SHOWN]
    distance = np.median([each.distance[shown] for each in found], axis=0)
    angle = np.median([each.angle[shown] for each in found], axis=0)
    return [
        name,
        source,
        *(f"{100 * metres:.2f}" for metres in distance),
        *(f"{x:.3f}" for x in angle),
    ]
