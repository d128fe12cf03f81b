"""The firmware's own parts, judged by flights: controllers, Kalman filter, battery.

python -m crazyflow_ros.reality.firmware_parts FLIGHTS...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from crazyflow_ros.flight_logs import FlightLog, read_flight_log
from crazyflow_ros.reality.battery import BatteryErrors, battery_errors
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


HEAD = (
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
"""Columns of `row`."""


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


def row(errors: PartErrors) -> list[str]:
    """Return a row of a table under `HEAD`, with empty cells for what was not judged."""
    cells = [errors.flight, *[""] * (len(HEAD) - 1)]
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


def main(paths: Sequence[str]) -> int:
    """Print the errors of flights; returns 1 if one cannot be read, else 0."""
    rows, code = list[list[str]](), 0
    for path in paths:
        try:
            errors = part_errors(read_flight_log(path))
        except (ValueError, OSError) as error:
            print(error, file=sys.stderr, flush=True)
            code = 1
            continue
        rows.append(row(errors))
        for refusal in errors.refusals:
            print(f"not judged: {refusal}", file=sys.stderr, flush=True)
    print(markdown(HEAD, rows))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
