"""Commands that run other programs, including those of other packages.

A package adds a command with an entry point in the group `crazyflow_ros.commands`. It names a
function that takes the words after the command's name and the name of the program, for its help,
and returns the exit code. The list of commands shows the first line of its docstring.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks import entry_points
from crazyflow_ros.client.command_line.command import (
    REFUSED,
    CommandParser,
    ProgramCommand,
    SimulatorCommand,
    UsageError,
    argument,
    program_name,
)
from crazyflow_ros.resources import resource

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

GROUP = "crazyflow_ros.commands"
"""Group of the entry points of commands."""


def _only_help(name: str, words: Sequence[str]) -> int:
    """Print the help of a command that `__main__` runs itself unless asked for help."""
    text = {program.name: program.text for program in COMMANDS}[name]
    drones = "--ros-args -p drones:=[cf0,cf1]"
    examples = (f"{name} {drones}", f"{name} --lock-step {drones} -- python script.py")
    parser = CommandParser(name, text, examples)
    parser.add_argument("arguments", nargs="*", help="--ros-args -p name:=value ...")
    parser.add_argument(
        "--lock-step",
        action="store_true",
        help="let the program after -- live in simulated time: it runs as fast as possible, and "
        "each time the same",
    )
    parser.parse_args(words)
    return 0


def _replay(words: Sequence[str]) -> int:
    from crazyflow_ros.extras import extra

    try:
        with extra("record"):
            import mcap  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"replay: {error}", file=sys.stderr)
        return REFUSED
    from crazyflow_ros.ros.recording.replay import run

    return run(words, f"{program_name()} replay")


def _build_messages(words: Sequence[str]) -> int:
    CommandParser("build-messages", _BUILD_MESSAGES).parse_args(words)
    try:
        script = resource("interfaces", "build.py")
    except FileNotFoundError:
        print("build-messages: on a ROS machine, 'colcon build' builds them", file=sys.stderr)
        return REFUSED
    return subprocess.run([sys.executable, script]).returncode


def _fly(simulation: SimulatorClient, options: Namespace) -> str | None:
    if not sys.stdin.isatty():
        raise UsageError("it needs a terminal with a keyboard")
    from crazyflow_ros.client.keyboard import fly

    drone = simulation.drone(options.drone or simulation.drones[0])
    simulation.need_time()
    fly(simulation, drone)
    return None


def _doctor(words: Sequence[str]) -> int:
    from crazyflow_ros.client.command_line import doctor

    return doctor.main(words, _DOCTOR)


_DOCTOR = "say what is installed, what is missing, and which command mends it"
_BUILD_MESSAGES = "build the message packages that this environment lacks, after pip install"

COMMANDS: tuple[SimulatorCommand | ProgramCommand, ...] = (
    ProgramCommand(
        "run", "run the simulator; further arguments are passed to ROS", partial(_only_help, "run")
    ),
    ProgramCommand(
        "crazyflie-server",
        "run the simulator as crazyswarm2's server",
        partial(_only_help, "crazyflie-server"),
    ),
    SimulatorCommand(
        "fly",
        "fly a drone with the keyboard of this terminal",
        _fly,
        (argument("drone", nargs="?", help="name of a drone, default: the first one"),),
        ("fly", "fly cf1"),
    ),
    ProgramCommand(
        "replay", "fly a recording of the simulator again, and compare all states", _replay
    ),
    ProgramCommand("build-messages", _BUILD_MESSAGES, _build_messages),
    ProgramCommand("doctor", _DOCTOR, _doctor),
)


def installed() -> tuple[ProgramCommand, ...]:
    """Return the commands of installed packages and of extensions, sorted by their names."""
    entries = {entry.name: entry for entry in entry_points.found(GROUP)}
    return tuple(
        ProgramCommand(name, _first_line(entry), partial(_load_and_run, name))
        for name, entry in entries.items()
    )


def _load_and_run(name: str, words: Sequence[str]) -> int:
    try:
        main = entry_points.load(GROUP, name, "command", "a function", callable)
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return REFUSED
    code: int = main(words, f"{program_name()} {name}")
    return code


def _first_line(entry: EntryPoint) -> str:
    """Return the first line of a function's docstring as a phrase, or else the name of its package.

    It is read from the source, because importing all commands would take seconds.
    """
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.parse(_source(entry.module).read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name == entry.attr:
                line = (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")
                return line[:1].lower() + line[1:] or f"of {entry_points.package_of(entry)}"
    return f"of {entry_points.package_of(entry)}"


def _source(module: str) -> Path:
    """Find the file of a module without importing the packages that it is in.

    Raises:
        FileNotFoundError: There is none.
    """
    top, *rest = module.split(".")
    spec, name = find_spec(top), top
    for part in rest:
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations if spec else None)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(module)
    return Path(spec.origin)
