"""All commands, in the order of the help."""

from __future__ import annotations

from crazyflow_ros.checks.limits import shown, suggestion
from crazyflow_ros.command_line import (
    drones,
    files,
    graph,
    parameters,
    programs,
    time_control,
    world,
)
from crazyflow_ros.command_line.command import Command, ProgramCommand, program_name

GROUPS: dict[str, tuple[Command | ProgramCommand, ...]] = {
    "drones": drones.COMMANDS,
    "time": time_control.COMMANDS,
    "the world": world.COMMANDS,
    "parameters": parameters.COMMANDS,
    "files": files.COMMANDS,
    "topics and services": graph.COMMANDS,
    "programs": programs.COMMANDS,
}
"""Commands by the title under which the help lists them."""


class UnknownCommand(ValueError):
    """Words that begin with no command; the message suggests one."""


def find(words: list[str]) -> tuple[Command | ProgramCommand, list[str]]:
    """Return the command with which words begin, and the words after it.

    Raises:
        UnknownCommand: There is none.
    """
    found = {command.name: command for group in GROUPS.values() for command in group}
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
    width = max(len(command.name) for group in GROUPS.values() for command in group) + 2
    parts = []
    for title, group in GROUPS.items():
        lines = (f"  {command.name:{width}}{command.text}" for command in group)
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(parts)


def group_help(first: str) -> str:
    """Return the help of all commands with the same first word; empty if there are none."""
    every = [command for group in GROUPS.values() for command in group]
    width = max(len(command.name) for command in every) + 2
    own = [command for command in every if command.name.startswith(f"{first} ")]
    lines = (f"  {command.name:{width}}{command.text}" for command in own)
    details = f"\n\n{program_name()} {first} ... --help has the arguments of each."
    return "\n".join(lines) + details if own else ""
