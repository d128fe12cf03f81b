"""The firmware's own parts, judged by flights: controllers, Kalman filter, battery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.reality.battery_errors import BatteryErrors, battery_errors
from crazyflow_ros.reality.controllers import ControllerErrors, controller_errors
from crazyflow_ros.reality.estimates import EstimateErrors, estimate_errors
from crazyflow_ros.reality.report import markdown

T = TypeVar("T")


@dataclass(frozen=True)
class PartErrors:
    """Errors of the parts in a flight; None where the log does not have what a part needs."""

    flight: str
    controller: ControllerErrors | None
    estimate: EstimateErrors | None
    battery: BatteryErrors | None
    refusals: tuple[str, ...]
    """Why parts are None."""


_HEAD = (
    "flight",
    "roll, pitch [deg]",
    "thrust: offset, band [%]",
    "PWM, band [%]",
    "estimate [mm]",
    "tilt, yaw [deg]",
    "onboard, poses [mm]",
    "battery [mV]",
    "own cell [mV]",
    "[Ohm]",
)


def part_errors(log: FlightLog, mass: float | None = None) -> PartErrors:
    """Compare each part with what the log has of the firmware's.

    Args:
        log: The flight.
        mass: Of the drone, for the battery, kg; by default that of the `cf2x_L250`.
    """
    refusals = list[str]()

    def tried(judge: Callable[[], T]) -> T | None:
        try:
            return judge()
        except ValueError as error:
            refusals.append(str(error))
            return None

    controller = tried(lambda: controller_errors(log))
    estimate = tried(lambda: estimate_errors(log))
    battery = tried(lambda: battery_errors(log, mass=mass))
    return PartErrors(log.name, controller, estimate, battery, tuple(refusals))


def table(found: Sequence[PartErrors]) -> str:
    """Return a row for each flight."""
    return markdown(_HEAD, [_row(each) for each in found])


def _row(errors: PartErrors) -> list[str]:
    """Return a row of a table with empty cells for what was not judged."""
    cells = [errors.flight, *[""] * (len(_HEAD) - 1)]
    if (c := errors.controller) is not None:
        if c.roll is not None and c.pitch is not None:
            cells[1] = f"{c.roll:.2f}, {c.pitch:.2f}"
        cells[2] = f"{100 * c.thrust_offset:+.2f}, {100 * c.thrust:.2f}"
        cells[3] = f"{100 * c.pwm:.2f}"
    if (e := errors.estimate) is not None:
        cells[4] = f"{1e3 * e.position:.1f}"
        cells[5] = f"{e.tilt:.2f}, {e.yaw:.2f}"
        cells[6] = f"{1e3 * e.onboard_position:.1f}"
    if (b := errors.battery) is not None:
        cells[7:] = f"{1e3 * b.nominal:.0f}", f"{1e3 * b.own:.0f}", f"{b.resistance:.2f}"
    return cells
