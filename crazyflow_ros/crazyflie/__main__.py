"""`python -m crazyflow_ros.crazyflie`: simulated Crazyflies for cflib and cfclient, without ROS.

This module imports next to nothing, so that the ports are open before a program of cflib started at
the same time sends its first packet. `program` does the rest.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from crazyflow_ros.checks.plain_values import Declaration, Names, Numbers, declarations
from crazyflow_ros.checks.program_end import quiet_if_unread
from crazyflow_ros.crazyflie.link_config import LinkConfig
from crazyflow_ros.crazyflie.ports import Ports
from crazyflow_ros.crazyflie.signals import Signals
from crazyflow_ros.xla.flags import silence_alarms

_MOST_DRONES = 100  # each of which has its own port and address
_WRONG_USAGE = 2
_EPILOG = """
Then start a program of cflib:
  CFLIB_URI=udp://127.0.0.1:19850 python script.py
or let the simulator start it with that address, and end with it:
  python -m crazyflow_ros.crazyflie -- python script.py
or let it live in simulated time, as fast as possible, with the same flight each time:
  python -m crazyflow_ros.crazyflie --lock-step -- python script.py
"""


class _Later:
    """Names that only slow imports can provide: choices to check or show, or a default to show."""

    def __init__(self, load: Callable[[], Iterable[str]]) -> None:
        self._load = load

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __str__(self) -> str:
        return ", ".join(self)


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults, and keeps the lines of the epilog."""


def _models() -> Iterator[str]:
    """Yield the models that fly by CRTP."""
    from crazyflow_ros.drones import rotors_of  # slow

    return (m for m in _declared("drone_model").spec.choices if not rotors_of(m).has_tables)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, except for the program after `--`."""
    program = argparse.ArgumentParser(
        prog="python -m crazyflow_ros.crazyflie",
        usage="%(prog)s [options] [drones] [-- program [argument ...]]",
        description="Simulates Crazyflies, for cflib and cfclient on udp://127.0.0.1:19850 ff.",
        epilog=_EPILOG,
        formatter_class=_Help,
    )
    program.add_argument("drones", type=int, nargs="?", default=1, help="number of drones")

    def add_name(option: str, text: str, name: str) -> None:
        default = _Later(lambda: [_declared(name).default])
        choices = _Later(_models if name == "drone_model" else lambda: _declared(name).spec.choices)
        added = program.add_argument(option, default=default, metavar="NAME")
        added.choices = None if name == "scene" else choices
        added.scenes = _Later(_scenes)  # type: ignore[attr-defined]
        added.help = text  # here, because Python 3.14 formats a given text at once

    add_name("--model", "drone model: %(choices)s", "drone_model")
    add_name("--scene", "%(scenes)s, or path of an MJCF file", "scene")
    program.add_argument(
        "--positions",
        type=float,
        nargs="+",
        default=[],
        metavar="NUMBER",
        help="x, y, z [m] of each drone, alone or with its yaw [rad] or its quaternion x, y, z, w; "
        "none: side by side, 1 m apart",
    )
    program.add_argument(
        "--drone-collisions", action="store_true", help="let drones collide with one another"
    )
    program.add_argument("--view", action="store_true", help="show the drones in a browser")
    program.add_argument(
        "--real-time-factor",
        type=float,
        default=argparse.SUPPRESS,
        help="simulated seconds per second (default: 1; in lock-step as many as possible)",
    )
    program.add_argument(
        "--lock-step",
        action="store_true",
        help="let the program after -- live in simulated time: it flies as fast as possible, and "
        "each time the same",
    )
    program.add_argument("--battery", action="store_true", help="let the batteries run down")
    program.add_argument(
        "--wind",
        type=float,
        nargs=3,
        default=argparse.SUPPRESS,
        metavar=("X", "Y", "Z"),
        help="mean wind [m/s] (default: none)",
    )
    add_name("--estimator", "source of the state: %(choices)s", "estimator")
    program.add_argument(
        "--motion-capture", action="store_true", help="the estimator also measures poses"
    )
    for name, text in (
        ("--capture-dropout", "share of these poses that are missing"),
        ("--capture-delay", "age of these poses [s]"),
    ):
        program.add_argument(name, type=float, default=0.0, help=text)
    for option in declarations(LinkConfig):
        is_list, kind = option.kind in (Names, Numbers), option.kind
        if kind is bool:
            program.add_argument(
                f"--{option.name}", action="store_true", help=option.spec.description
            )
            continue
        program.add_argument(
            f"--{option.name}",
            type={Names: str, Numbers: float}.get(kind, kind),
            nargs="*" if is_list else None,
            default=list(option.default) if is_list else option.default,
            help=option.spec.description,
        )
    return program


def main(args: Sequence[str] | None = None) -> int:
    """Simulate until a signal arrives, or until the program after `--` ends.

    Args:
        args: Command line, by default that of the process.

    Returns:
        Exit code: that of the program, if there is one; else 0 after a signal. 1 if the simulation
        failed, 2 if it cannot start.
    """
    silence_alarms()
    given, command = _split(sys.argv[1:] if args is None else args)
    options = vars(parser().parse_args(given))
    link_options = {option.name: options.pop(option.name) for option in declarations(LinkConfig)}
    n_drones = options.pop("drones")
    try:
        if not 1 <= n_drones <= _MOST_DRONES:
            raise ValueError(f"drones must be from 1 to {_MOST_DRONES}, got {n_drones}")
        if options["lock_step"] and not command:
            raise ValueError("--lock-step needs a program: --lock-step -- python script.py")
        if command is not None and (not command or shutil.which(command[0]) is None):
            raise ValueError(f"expected a program after --, got {' '.join(command) or 'nothing'}")
        link = LinkConfig(**link_options)
        signals = Signals(exits_with_signal=command is not None)
        with closing(Ports(link.address, link.port, n_drones)) as ports:
            from crazyflow_ros.crazyflie import program  # which takes seconds

            chosen = {k: value for k, value in options.items() if not isinstance(value, _Later)}
            return program.run(n_drones, link, ports, signals, command, **chosen)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"crazyflie: {error}", file=sys.stderr)
        return _WRONG_USAGE


def _split(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return the arguments of the simulator, and the program after `--`, None without `--`."""
    given = list(words)
    if "--" not in given:
        return given, None
    end = given.index("--")
    return given[:end], given[end + 1 :]


def _declared(name: str) -> Declaration:
    """Return the declaration of an option of the simulation."""
    from crazyflow_ros.engine.config import SimulationOptions

    return next(option for option in declarations(SimulationOptions) if option.name == name)


def _scenes() -> Iterable[str]:
    from crazyflow_ros.scene.assembly import scenes

    return scenes()


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
