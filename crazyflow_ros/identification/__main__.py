"""The program `identify`: fits a drone's models to recorded flights, and writes its folder.

python -m crazyflow_ros.identification flight1.csv flight2.csv flight3.csv --drone cf2x_P250 \
    --mass 0.030 --output my_drone
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from crazyflow_ros.checks.limits import Limit, number
from crazyflow_ros.checks.program_end import in_words, quiet_if_unread
from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight_logs import FlightLog, read_flight_log
from crazyflow_ros.flight_logs.motion import in_the_air

if TYPE_CHECKING:
    from crazyflow_ros.identification.fit import Fit

_MASS = Limit(1e3, "kg")
_MOST_JUDGED = 20  # flights, each by the fit of the others
_BEARING = 8  # flights, of which fewer do not show how a drone differs from flight to flight


def main(arguments: Sequence[str] | None = None, program: str = "identify") -> int:
    """Fit the models of a drone to recorded flights, and write its folder.

    Returns:
        Exit code: 1 if the files or flights are unsuitable.
    """
    given = _parser(program).parse_args(arguments)
    try:
        return _run(given)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"{program}: {in_words(error)}", file=sys.stderr)
        return 1


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Fit the models of a drone to recorded flights, and write its folder. Rotor "
        "speeds, or duty cycles and voltage, tell first_principles; attitude commands tell so_rpy.",
    )
    parser.add_argument(
        "flights", nargs="+", help="logs of any format of docs/guides/flight_logs.md"
    )
    parser.add_argument("--drone", required=True, help="known drone with the same rotors")
    parser.add_argument("--output", required=True, help="folder to write, which must not exist")
    parser.add_argument("--mass", type=float, help="kg; default: that of the known drone")
    parser.add_argument("--name", default="cf0", help="name of the drone in MCAP files")
    parser.add_argument("--start", type=float, help="start of the part to use [s]")
    parser.add_argument(
        "--end", type=float, help="end of that part [s]; default of both: while it is in the air"
    )
    parser.add_argument(
        "--validation",
        nargs="+",
        default=[],
        metavar="FLIGHT",
        help="other flights, on which to judge the fits; default: each by the fit of the others",
    )
    return parser


def _run(given: argparse.Namespace) -> int:
    if given.mass is not None and number("--mass", given.mass, _MASS) <= 0:
        raise ValueError(f"--mass must be above 0 kg, got {given.mass:g} kg")
    figures = load_drone(given.drone)
    flights, others = (
        [_read(path, given) for path in paths] for paths in (given.flights, given.validation)
    )
    # JAX is loaded once the files are known to be readable.
    from crazyflow_ros.identification.drone_folder import write_drone

    with_rotors = [log for log in flights if _tells_rotors(log, figures)]
    with_commands = [log for log in flights if log.attitude_command is not None]
    for log in flights:
        if log not in with_rotors and log not in with_commands:
            raise ValueError(f"{log.name}: {_lacking(given.drone, figures)}")
    mass = figures["mass"] if given.mass is None else given.mass
    print(f"assumed: the rotors of {given.drone}, a mass of {1e3 * mass:g} g")
    if len(flights) < _BEARING:
        print(
            f"note: ± is what the noise within {_flights(len(flights))} allows. A drone differs by "
            "more from flight to flight, with the charge and place of its battery, which fewer "
            f"than {_BEARING} flights do not show"
        )
    fits: dict[str, Fit] = {}
    if with_commands:
        fits |= _fitted_models(with_commands, others, given)
    if with_rotors:
        fits |= _rigid_body(
            with_rotors, [log for log in others if _tells_rotors(log, figures)], given
        )
    names = ", ".join(log.name for log in flights)
    source = f"{names}, on {date.today().isoformat()}"
    print(f"written: {write_drone(given.output, given.drone, fits, given.mass, source)}")
    return 0


def _flights(n: int) -> str:
    return f"{n} flight{'s' if n > 1 else ''}"


def _read(path: str, given: argparse.Namespace) -> FlightLog:
    log = read_flight_log(path, given.name)
    if given.start is None and given.end is None:
        return in_the_air(log)
    return log.between(given.start or 0.0, math.inf if given.end is None else given.end)


def _tells_rotors(log: FlightLog, figures: dict[str, object]) -> bool:
    has_duty_cycles = log.pwm is not None and log.voltage is not None
    return log.rotor_vel is not None or (has_duty_cycles and "voltage2thrust" in figures)


def _lacking(drone: str, figures: dict[str, object]) -> str:
    text = "expected rotor speeds, duty cycles with the battery's voltage, or attitude commands"
    return text if "voltage2thrust" in figures else f"{text}; {drone} has no voltage2thrust"


def _fitted_models(
    logs: Sequence[FlightLog], others: Sequence[FlightLog], given: argparse.Namespace
) -> dict[str, Fit]:
    from crazyflow_ros.identification.fit import identify, rms_of
    from crazyflow_ros.identification.recorded_flight import RecordedFlight

    fits = identify([RecordedFlight.of(log) for log in logs], given.drone, given.mass)
    held_out = [RecordedFlight.of(log) for log in others if log.attitude_command is not None]
    rest = rms_of(fits, held_out, given.drone, given.mass) if held_out else {}
    for name, fit in fits.items():
        unit = "mrad" if name == "rotation" else "mm"
        other = f", on other flights {1e3 * rest[name]:.3g} {unit}" if rest else ""
        print(f"{name}: residuals {1e3 * fit.rms:.3g} {unit}{other}\n{fit}")
    return fits


def _rigid_body(
    logs: Sequence[FlightLog], others: Sequence[FlightLog], given: argparse.Namespace
) -> dict[str, Fit]:
    from crazyflow_ros.identification.drone_folder import RIGID_BODY
    from crazyflow_ros.identification.open_loop import judged, leave_one_out
    from crazyflow_ros.identification.rigid_body_fit import identify_rigid_body

    fit = identify_rigid_body(logs, given.drone, given.mass)
    print(f"first_principles, {len(logs)} flights: residuals {1e6 * fit.rms:.3g} uN m\n{fit}")
    if others:
        rows = [judged(log, given.drone, fit, given.mass) for log in others]
    elif 2 <= len(logs) <= _MOST_JUDGED:
        try:
            rows = leave_one_out(logs, given.drone, given.mass)
        except ValueError as error:
            print(f"not judged by the fit of the other flights: {error}")
            rows = []
    else:
        print(f"not judged: {len(logs)} flights; without --validation it takes 2 to {_MOST_JUDGED}")
        rows = []
    if rows:
        source = "the flights of --validation" if others else "each flight by the fit of the others"
        print(f"open-loop errors, known drone -> identified one, on {source}:")
    for row in rows:
        print(f"  {row}")
    return {RIGID_BODY: fit}


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
