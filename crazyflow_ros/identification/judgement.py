"""Open-loop errors of a known drone and of an identified one, on flights that were not fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.identification.fit import Fit
from crazyflow_ros.identification.open_loop import APART, OpenLoop, open_loop_errors
from crazyflow_ros.identification.rigid_body import identify_rigid_body, with_fit

_SHOWN = (0.1, 0.5)  # s


class Judgement(NamedTuple):
    """Errors of one flight."""

    before: OpenLoop
    """With the known drone."""
    after: OpenLoop
    """With the fit."""

    def __str__(self) -> str:
        """One line: position and attitude at 0.1 and 0.5 s, before and after."""
        parts = []
        for seconds in _SHOWN:
            i = round(seconds / APART) - 1
            distance, angle = (
                f"{before[i]:.2g} -> {after[i]:.2g}"
                for before, after in (
                    (100 * self.before.distance, 100 * self.after.distance),
                    (self.before.angle, self.after.angle),
                )
            )
            parts.append(f"after {seconds:g} s {distance} cm, {angle} rad")
        return f"{self.before.name}: " + "; ".join(parts)


def judged(log: FlightLog, drone: str, fit: Fit, mass: float | None = None) -> Judgement:
    """Judge a fit by a flight.

    Args:
        log: In the air, not one that was fitted.
        drone: The known drone, as for `identify_rigid_body`.
        fit: Its result.
        mass: As for it.

    Raises:
        ValueError: See `open_loop_errors`.
    """
    figures, params = load_drone(drone), Params.create(drone)
    if mass is not None:
        params = params.replace(mass=jnp.full_like(params.mass, mass))
    before, after = (
        open_loop_errors(log, each, figures) for each in (params, with_fit(params, fit))
    )
    return Judgement(before, after)


def leave_one_out(
    logs: Sequence[FlightLog], drone: str, mass: float | None = None
) -> list[Judgement]:
    """Judge each flight by the fit of the others.

    Args:
        logs: As for `identify_rigid_body`, at least two.
        drone: As for it.
        mass: As for it.

    Raises:
        ValueError: A flight is too short, or all but one are.
    """
    found = []
    for i, log in enumerate(logs):
        others = identify_rigid_body([*logs[:i], *logs[i + 1 :]], drone, mass)
        found.append(judged(log, drone, others, mass))
    return found
