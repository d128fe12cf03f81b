"""The program `reality`: flies recorded flights again, and says how far they are from reality.

python -m crazyflow_ros reality FLIGHTS... --drone my_drone --pictures out
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.output import quiet_if_unread

if TYPE_CHECKING:
    from crazyflow_ros.reality.closed_loop import Flown, Replay
    from crazyflow_ros.reality.comparison import Comparison
    from crazyflow_ros.reality.recorded import Recorded

FLIGHTS = 10_000
"""Most flights."""

_SUFFIXES = (".csv", ".csv.xz")  # of flights that are sought in folders


def main(words: Sequence[str] | None = None, program: str = "reality") -> int:
    """Run the program.

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
        print(f"{program}: {error}", file=sys.stderr)
        return 1


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Fly recorded flights again in closed loop: the recorded setpoints, from the "
        "recorded start. Prints how far the simulated drone is from the real one.",
        epilog=f"example: {program} flights/ --drone my_drone --pictures out --json out.json",
    )
    parser.add_argument(
        "flights", nargs="+", help="logs of flights, or folders with .csv and .csv.xz files"
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
        help="by how much setpoints in the logs are later than the poses [s], default 0",
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
    from crazyflow_ros.reality.closed_loop import Replay, fly
    from crazyflow_ros.reality.comparison import between_repetitions, compare

    options = {
        name: value
        for name in ("drone", "dynamics", "controller", "mass", "known")
        if (value := getattr(given, name)) is not None
    }
    replay = Replay(**options)
    flights, refused = _flights(paths, given, replay)
    flown = fly(flights, replay, _say)
    pairs = between_repetitions(flights)
    found = [replace(compare(each), repetitions=pairs.get(each.real.log.name)) for each in flown]
    _print(found, refused)
    _save(given, replay, list(zip(flown, found)), refused)
    return 0 if found else 1


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


def _flights(
    paths: Sequence[Path], given: argparse.Namespace, replay: Replay
) -> tuple[list[Recorded], dict[str, str]]:
    """Read flights; return those that can be judged, and why others cannot, by name."""
    from crazyflow_ros.flight_logs import read_flight_log
    from crazyflow_ros.reality.comparison import judged_part
    from crazyflow_ros.reality.recorded import recorded

    flights: list[Recorded] = []
    refused: dict[str, str] = {}
    known = dict[bytes, str]()
    for number, path in enumerate(paths, 1):
        _say(f"reading {number} of {len(paths)}: {path.name}")
        log = read_flight_log(path).between(given.start, given.end)
        if any(log.name == flight.log.name for flight in flights) or log.name in refused:
            log = replace(log, name=f"{path.absolute().parent.name}_{log.name}")
        first = known.setdefault(log.pose.values.tobytes(), log.name)
        try:
            if first != log.name:
                raise ValueError(f"{log.name} is a copy of {first}")
            flight = recorded(log, given.lateness)
            judged_part(flight)
            replay.controller_of(log)
        except ValueError as error:
            refused[log.name] = str(error)
        else:
            flights.append(flight)
    return flights, refused


def _print(found: Sequence[Comparison], refused: Mapping[str, str]) -> None:
    from crazyflow_ros.reality.report import table

    if found:
        print(table(found))
    for each in found:
        if each.fall:
            print(f"the simulated drone falls: {each.name}: {each.fall}")
    for reason in refused.values():
        print(f"not judged: {reason}")


def _save(
    given: argparse.Namespace,
    replay: Replay,
    results: Sequence[tuple[Flown, Comparison]],
    refused: Mapping[str, str],
) -> None:
    from crazyflow_ros.reality.pictures import draw
    from crazyflow_ros.reality.report import as_json

    if given.json:
        settings = {k: v and str(v) for k, v in vars(replay).items()} | {"mass": replay.mass}
        settings |= {"lateness": given.lateness, "start": given.start, "end": given.end}
        text = as_json(settings, [found for _, found in results], refused)
        write_file(given.json, text.encode())
        _say(f"wrote {given.json}")
    if given.pictures:
        given.pictures.mkdir(exist_ok=True)
        for number, (flown, found) in enumerate(results, 1):
            _say(f"drawing {number} of {len(results)}: {found.name}")
            draw(flown, found, given.pictures / f"{found.name}.png")
        _say(f"wrote {len(results)} pictures into {given.pictures}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
