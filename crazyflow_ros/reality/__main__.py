"""The program `reality`: flies recorded flights again, and says how far they are from reality.

python -m crazyflow_ros reality FLIGHTS... --drone my_drone --pictures out
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.checks.program_end import in_words, quiet_if_unread

if TYPE_CHECKING:
    from crazyflow_ros.flight_logs import FlightLog
    from crazyflow_ros.identification.open_loop import OpenLoop
    from crazyflow_ros.reality.closed_loop import Replay
    from crazyflow_ros.reality.firmware_parts import PartErrors
    from crazyflow_ros.reality.flight_comparison import Comparison
    from crazyflow_ros.reality.recorded import Recorded
    from crazyflow_ros.reality.report import Unaided

T = TypeVar("T")

FLIGHTS = 10_000
"""Most flights."""
TABLES = {
    "closed-loop": "the recorded setpoints, from the recorded start, by the simulated controllers",
    "unaided": "nothing but the recorded setpoints, by the controllers and by packets of CRTP",
    "open-loop": "the recorded rotor speeds, or duty cycles and voltage, for half a second each",
    "parts": "controllers, Kalman filter and battery, each given what it was given in flight",
}
"""What is judged, by the names of the tables."""

_SUFFIXES = (".csv", ".csv.xz")  # of flights that are sought in folders


def main(words: Sequence[str] | None = None, program: str = "reality") -> int:
    """Fly recorded flights of real drones again, and compare the paths.

    Args:
        words: Words of the command line, by default those of the process.
        program: How it is called.

    Returns:
        Exit code: 0, or 1 if no flight can be judged, a file cannot be read or an option is wrong.
    """
    given = _parser(program).parse_args(words)
    try:
        return _run(given)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"{program}: {in_words(error)}", file=sys.stderr)
        return 1


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Fly recorded flights again, and print how far the simulated drone is from the "
        "real one.",
        epilog=f"example: {program} flights/ --drone my_drone --pictures out --json out.json",
    )
    parser.add_argument(
        "flights", nargs="+", help="logs of flights, or folders with .csv and .csv.xz files"
    )
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=TABLES,
        default=[*TABLES],
        metavar="TABLE",
        help="; ".join(f"{name}: {meaning}" for name, meaning in TABLES.items()) + "; default: all",
    )
    parser.add_argument("--drone", help="name of a drone, or path of a drone's folder")
    parser.add_argument("--dynamics", help="model, default: first_principles")
    parser.add_argument("--mass", type=float, help="of the drone [kg], default: its own")
    parser.add_argument("--controller", help="default: the one that the log names")
    parser.add_argument(
        "--known",
        choices=("recorded", "true", "kalman"),
        help="what controllers know of the state: the true state plus the recorded error of the "
        "drone's estimate (default), the true state, or the estimate of a simulated Kalman filter",
    )
    parser.add_argument(
        "--lateness",
        type=float,
        default=0.0,
        help="delay of the logged setpoints behind the poses [s], default 0",
    )
    parser.add_argument("--start", type=float, default=0.0, help="start of the part to fly [s]")
    parser.add_argument("--end", type=float, default=math.inf, help="end of that part [s]")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each flight")
    return parser


def _run(given: argparse.Namespace) -> int:
    paths = _files(given.flights)
    for path in filter(None, (given.json, given.pictures)):
        if not (folder := path.absolute().parent).is_dir():
            raise ValueError(f"there is no folder {shown_path(folder)}")
    # After the words have been checked, so that the help is quick.
    from crazyflow_ros.reality.closed_loop import Replay
    from crazyflow_ros.reality.report import as_json

    options = {
        name: value
        for name in ("drone", "dynamics", "controller", "mass", "known")
        if (value := getattr(given, name)) is not None
    }
    replay = Replay(**options)
    print(_assumptions(replay))
    logs, refused = _logs(paths, given)
    tables: dict[str, Callable[[], Sequence[object]]] = {
        "closed-loop": lambda: _closed_loop(logs, given, replay, refused),
        "unaided": lambda: _unaided(logs, given, replay),
        "open-loop": lambda: _open_loop(logs, replay, refused),
        "parts": lambda: _parts(logs, replay, refused),
    }
    judged = {name: tables[name]() for name in TABLES if name in given.tables}
    for reason in refused:
        print(f"not judged: {reason}")
    if given.json:
        settings = {k: v and str(v) for k, v in vars(replay).items()} | {"mass": replay.mass}
        settings |= {"lateness": given.lateness, "start": given.start, "end": given.end}
        write_file(given.json, as_json(settings, judged, refused).encode())
        _say(f"wrote {given.json}")
    return 0 if any(judged.values()) else 1


_KNOWN = {
    "recorded": "the true state plus the recorded error of the real drone's estimate, which is "
    "knowledge from the flight (--known true does without)",
    "true": "the true state",
    "kalman": "the estimate of a simulated Kalman filter with motion capture",
}


def _assumptions(replay: Replay) -> str:
    """Return what the tables rest on, in words."""
    from crazyflow_ros.drones import load_drone

    mass = load_drone(str(replay.drone))["mass"] if replay.mass is None else replay.mass
    return (
        f"drone: {replay.drone}, {1e3 * mass:.4g} g, {replay.dynamics}; controllers: "
        f"{replay.controller or 'those that the logs name'}; in the closed loop they know "
        f"{_KNOWN[str(replay.known)]}, and motors have the recorded voltage; the table unaided is "
        "without both"
    )


def _files(given: Sequence[str]) -> list[Path]:
    """Return the files of words that are files or folders.

    Raises:
        ValueError: There are none in a folder, or too many.
    """
    found = list[Path]()
    for word in given:
        path = Path(word)
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES))
        if not inside:
            raise ValueError(f"there is no flight ({', '.join(_SUFFIXES)}) in {shown_path(path)}")
        found += inside
    if len(found) > FLIGHTS:
        raise ValueError(f"there may be {FLIGHTS} flights, got {len(found)}")
    return found


def _logs(paths: Sequence[Path], given: argparse.Namespace) -> tuple[list[FlightLog], list[str]]:
    """Read flights; return them without copies, and which are copies."""
    from crazyflow_ros.flight_logs import read_flight_log

    logs: dict[str, FlightLog] = {}
    copies = list[str]()
    known = dict[bytes, str]()
    for number, path in enumerate(paths, 1):
        _say(f"reading {number} of {len(paths)}: {path.name}")
        log = read_flight_log(path).between(given.start, given.end)
        if log.name in logs:
            log = replace(log, name=f"{path.absolute().parent.name}_{log.name}")
        first = known.setdefault(log.pose.values.tobytes(), log.name)
        if first != log.name:
            copies.append(f"{log.name} is a copy of {first}")
        else:
            logs[log.name] = log
    return [*logs.values()], copies


def _closed_loop(
    logs: Sequence[FlightLog], given: argparse.Namespace, replay: Replay, refused: list[str]
) -> list[Comparison]:
    from crazyflow_ros.reality.closed_loop import fly
    from crazyflow_ros.reality.flight_comparison import between_repetitions, compare, judged_part
    from crazyflow_ros.reality.flight_pictures import draw
    from crazyflow_ros.reality.recorded import recorded
    from crazyflow_ros.reality.report import table

    def flight_of(log: FlightLog) -> Recorded:
        flight = recorded(log, given.lateness)
        judged_part(flight)
        replay.controller_of(log)
        return flight

    flights = _each(logs, flight_of, refused)
    flown = fly(flights, replay, _say)
    pairs = between_repetitions(flights)
    found = [replace(compare(each), repetitions=pairs.get(each.real.log.name)) for each in flown]
    if found:
        print(f"\nclosed loop: {TABLES['closed-loop']}\n\n{table(found)}\n")
    for each in found:
        if each.fall:
            print(f"the simulated drone falls: {each.name}: {each.fall}")
    if given.pictures:
        given.pictures.mkdir(exist_ok=True)
        for number, (again, errors) in enumerate(zip(flown, found), 1):
            _say(f"drawing {number} of {len(found)}: {errors.name}")
            draw(again, errors, given.pictures / f"{errors.name}.png")
        _say(f"wrote {len(found)} pictures into {given.pictures}")
    return found


def _unaided(logs: Sequence[FlightLog], given: argparse.Namespace, replay: Replay) -> list[Unaided]:
    """Fly flights again without what only their logs know: voltage, and errors of the estimate."""
    from crazyflow_ros.reality.closed_loop import KnownState, fly
    from crazyflow_ros.reality.crtp_flights import fly_by_packets, without_voltage
    from crazyflow_ros.reality.flight_comparison import compare, judged_part
    from crazyflow_ros.reality.recorded import recorded
    from crazyflow_ros.reality.report import Unaided, unaided_table

    def flight_of(log: FlightLog) -> Recorded:
        flight = recorded(log, given.lateness)
        judged_part(flight)
        replay.controller_of(log)
        return without_voltage(flight)

    flights = _each(logs, flight_of, [])  # refused ones are told with the first table
    errors = [
        [compare(each) for each in again(flights, replace(replay, known=known), _say)]
        for known in (KnownState.true, KnownState.kalman)
        for again in (fly, fly_by_packets)
    ]
    found = [Unaided(*each) for each in zip(*errors)]
    if found:
        print(f"\nunaided: {TABLES['unaided']}\n\n{unaided_table(found)}\n")
    return found


def _open_loop(logs: Sequence[FlightLog], replay: Replay, refused: list[str]) -> list[OpenLoop]:
    from crazyflow_ros.drones import load_drone
    from crazyflow_ros.flight_logs.motion import in_the_air
    from crazyflow_ros.identification.open_loop import open_loop_errors, params_of
    from crazyflow_ros.reality.report import open_loop_table

    drone = str(replay.drone)
    params, figures = params_of(drone, replay.mass), load_drone(drone)
    found = _each(logs, lambda log: open_loop_errors(in_the_air(log), params, figures), refused)
    if found:
        print(f"\nopen loop: {TABLES['open-loop']}\n\n{open_loop_table(found)}\n")
    return found


def _parts(logs: Sequence[FlightLog], replay: Replay, refused: list[str]) -> list[PartErrors]:
    from crazyflow_ros.reality.firmware_parts import part_errors, table

    def judged(log: FlightLog) -> PartErrors:
        errors = part_errors(log, replay.mass)
        refused.extend(errors.refusals)
        return errors

    found = _each(logs, judged, refused)
    if found:
        print(f"\nparts: {TABLES['parts']}\n\n{table(found)}\n")
    return found


def _each(
    logs: Sequence[FlightLog], judge: Callable[[FlightLog], T], refused: list[str]
) -> list[T]:
    """Return the results for flights that can be judged; note why others cannot."""
    found = list[T]()
    for number, log in enumerate(logs, 1):
        _say(f"{number} of {len(logs)}: {log.name}")
        try:
            found.append(judge(log))
        except ValueError as error:
            refused.append(str(error))
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
