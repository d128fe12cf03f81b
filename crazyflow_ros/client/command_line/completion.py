"""`completion`: what a shell reads to complete commands, their second words and their options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from crazyflow_ros.client.command_line.command import (
    OK,
    REFUSED,
    CommandParser,
    ProgramCommand,
    SimulatorCommand,
    argument,
)
from crazyflow_ros.extras import extra

SHELLS = ("bash", "zsh")
PROGRAM = "crazyflow_ros"
"""What is completed: shells complete by the name of a program, and `python -m` has another one."""

_MORE = f"""
It completes the program {PROGRAM}, which pip installs beside python, also as .venv/bin/{PROGRAM}.
For zsh, compinit has to run first."""


Command = SimulatorCommand | ProgramCommand


def main(words: Sequence[str], text: str, commands: Iterable[Command]) -> int:
    """Print a script, and return the exit code.

    Args:
        words: What follows the name of the command.
        text: What the command does.
        commands: What is completed.
    """
    examples = ("completion bash >> ~/.bash_completion", "completion zsh > ~/.zfunc/_crazyflow_ros")
    parser = CommandParser("completion", text, examples, _MORE)
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to complete")
    shell = parser.parse_args(words).shell
    try:
        with extra("completion"):
            import shtab
    except ModuleNotFoundError as error:
        print(f"completion: {error}", file=sys.stderr)
        return REFUSED
    print(shtab.complete(_parser_of(commands), shell))
    return OK


def _parser_of(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """Return one parser of everything, from those of the commands."""
    top = argparse.ArgumentParser(PROGRAM, allow_abbrev=False)
    first_words = top.add_subparsers()
    second_words: dict[str, argparse._SubParsersAction[argparse.ArgumentParser]] = {}
    for command in commands:
        first, _, second = command.name.partition(" ")
        where = first_words
        if second:
            if first not in second_words:
                both = first_words.add_parser(first, help=f"{first} ...")  # shtab needs a help
                second_words[first] = both.add_subparsers()
            where = second_words[first]
        parser = where.add_parser(second or first, help=command.text)
        if isinstance(command, SimulatorCommand):
            command.add_arguments(parser)
        elif command.name == "completion":
            parser.add_argument("shell", choices=SHELLS)
        else:  # a program has arguments of its own, mostly files
            argument("rest", nargs="*", type=Path)(parser)
    return top
