"""Commands of the command line, their arguments and their help."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from crazyflow_ros.client.simulator_arguments import add_simulator_arguments

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

OK, REFUSED, WRONG_USAGE = 0, 1, 2
"""Exit codes."""
WAIT = 20.0
"""s of wall time to wait for a simulator."""


class UsageError(ValueError):
    """The arguments of a command make no sense."""


FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}
"""Functions with which shells complete the names of files, see `completion`."""

Argument = Callable[[argparse.ArgumentParser], object]
"""Adds an argument to the parser of a command."""


def argument(*names: str, **options: Any) -> Argument:
    """Describe an argument, see `argparse.ArgumentParser.add_argument`."""

    def add(parser: argparse.ArgumentParser) -> None:
        added = parser.add_argument(*names, **options)
        if options.get("type") is Path:
            added.complete = FILES  # type: ignore[attr-defined]  # which shtab reads

    return add


DRONE = argument("drone", help="name of a drone")
DRONE_OR_ALL = argument("drone", help="name of a drone, or all")


@dataclass(frozen=True)
class SimulatorCommand:
    """A command for a running simulator."""

    name: str
    """One word, or two: those with the same first word belong together."""
    text: str
    """What it does, for the list of commands."""
    run: Callable[[SimulatorClient, argparse.Namespace], str | None]
    """Carries it out, and returns a text about the result.

    It raises `SimulationError` if the simulator refuses, and `UsageError`."""
    arguments: tuple[Argument, ...] = ()
    examples: tuple[str, ...] = ()
    """Words after the name of the program."""
    more: str = ""
    """Further lines of the help."""

    def parser(self) -> CommandParser:
        """Return the parser of its words."""
        made = CommandParser(self.name, self.text, self.examples, self.more)
        self.add_arguments(made)
        return made

    def add_arguments(self, made: argparse.ArgumentParser) -> None:
        """Add its arguments to a parser."""
        for add in self.arguments:
            add(made)
        said = made.add_argument_group("what is said").add_mutually_exclusive_group()
        said.add_argument(
            "-q", "--quiet", action="store_true", help="only errors; the exit code has the answer"
        )
        said.add_argument(
            "-v", "--verbose", action="store_true", help="also what the simulator logs meanwhile"
        )
        group = made.add_argument_group("which simulator")
        add_simulator_arguments(group)
        group.add_argument(
            "--wait",
            type=float,
            default=WAIT,
            metavar="SECONDS",
            help=f"how long to wait for a simulator that is not there yet, default {WAIT:g}",
        )


@dataclass(frozen=True)
class ProgramCommand:
    """A command that is a program of its own, with its own arguments."""

    name: str
    text: str
    run: Callable[[Sequence[str]], int]
    """Takes the words after the name, and returns the exit code."""


class CommandParser(argparse.ArgumentParser):
    """The parser of the words of one command."""

    def __init__(
        self, name: str, text: str, examples: Sequence[str] = (), more: str = "", **options: Any
    ) -> None:
        shown = "\n".join(f"  {program_name()} {example}" for example in examples)
        parts = [more.strip("\n"), f"examples:\n{shown}" if shown else ""]
        super().__init__(
            prog=f"{program_name()} {name}".rstrip(),
            description=f"{text[:1].upper()}{text[1:]}." if text else None,
            epilog="\n\n".join(filter(None, parts)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong, and exit."""
        self.print_usage(sys.stderr)
        self.exit(WRONG_USAGE, f"{self.prog}: {message}; --help has examples\n")


def program_name() -> str:
    """Return how this program is called."""
    called = os.path.basename(sys.argv[0])
    if called == "simulator":  # the script that `ros2 run` finds
        return "ros2 run crazyflow_ros simulator"
    return "crazyflow_ros" if called == "crazyflow_ros" else "python -m crazyflow_ros"
