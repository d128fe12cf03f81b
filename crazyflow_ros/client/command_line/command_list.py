"""The list of commands, in the order of the help."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from crazyflow_ros.checks.limits import shown, suggestion
from crazyflow_ros.client.command_line import (
    file_commands,
    flight_commands,
    graph_commands,
    parameter_commands,
    programs,
    time_commands,
    world_commands,
)
from crazyflow_ros.client.command_line.command import ProgramCommand, SimulatorCommand, program_name
from crazyflow_ros.client.command_line.text import table_row

Groups = dict[str, tuple[SimulatorCommand | ProgramCommand, ...]]
"""Commands by the title under which the help lists them."""

_COMPLETION = "print what makes bash or zsh complete commands"


def _complete(words: Sequence[str]) -> int:
    from crazyflow_ros.client.command_line import completion

    return completion.main(words, _COMPLETION, chain.from_iterable(groups().values()))


OWN: Groups = {
    "drones": flight_commands.COMMANDS,
    "time": time_commands.COMMANDS,
    "the world": world_commands.COMMANDS,
    "parameters": parameter_commands.COMMANDS,
    "files": file_commands.COMMANDS,
    "topics and services": graph_commands.COMMANDS,
    "programs": (*programs.COMMANDS, ProgramCommand("completion", _COMPLETION, _complete)),
}
"""Commands of this package: finding those of others takes a tenth of a second."""


def groups() -> Groups:
    """Return all commands, with those of installed packages."""
    own = _by_name(OWN)
    others = (command for command in programs.installed() if command.name not in own)
    return OWN | {"programs": (*OWN["programs"], *others)}


class UnknownCommand(ValueError):
    """Words that begin with no command; the message suggests one."""


def find(words: list[str]) -> tuple[SimulatorCommand | ProgramCommand, list[str]]:
    """Return the command with which words begin, and the words after it.

    Raises:
        UnknownCommand: There is none.
    """
    found = _by_name(OWN)
    if words[0] not in {name.partition(" ")[0] for name in found}:
        found = _by_name(groups())
    for length in (2, 1):
        if (name := " ".join(words[:length])) in found and len(words) >= length:
            return found[name], words[length:]
    first, *rest = words
    actions = [name.partition(" ")[2] for name in found if name.startswith(f"{first} ")]
    if not actions:
        hint = suggestion(first, {name.partition(" ")[0] for name in found})
        raise UnknownCommand(f"there is no command {shown(first)!r}; {hint or '--help lists all'}")
    have = f"it is one of {', '.join(actions)}"
    if not rest or rest[0].startswith("-"):
        raise UnknownCommand(f"{first} needs a second word; {have}")
    hint = suggestion(rest[0], actions)
    raise UnknownCommand(f"there is no command '{first} {shown(rest[0])}'; {hint or have}")


def overview() -> str:
    """Return the list of commands."""
    known = groups()
    width = max(map(len, _by_name(known))) + 2  # with the indentation
    parts = []
    for title, group in known.items():
        lines = (table_row((f"  {command.name}", command.text), (width, 0)) for command in group)
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(parts)


def group_help(first: str) -> str:
    """Return the help of all commands with the same first word; empty if there are none."""
    every = _by_name(OWN)
    width = max(map(len, every)) + 2  # with the indentation
    own = [command for name, command in every.items() if name.startswith(f"{first} ")]
    lines = (table_row((f"  {command.name}", command.text), (width, 0)) for command in own)
    details = f"\n\n{program_name()} {first} ... --help has the arguments of each."
    return "\n".join(lines) + details if own else ""


def _by_name(known: Groups) -> dict[str, SimulatorCommand | ProgramCommand]:
    return {command.name: command for group in known.values() for command in group}
