"""Checks for the launch files that `launch` does not offer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

READY = "ready: "
"""Start of the log message that announces that all topics of the simulator exist."""
_OF_LAUNCH = ("launch-prefix", "launch-prefix-filter")  # added by launch itself


def refuse_unknown(
    file: str, known: Collection[str], given: Iterable[str], command: Sequence[str]
) -> None:
    """Refuse unknown arguments, which `ros2 launch` silently accepts.

    Nothing is refused if another launch file includes this one: the arguments may be its own.

    Args:
        file: Path of the launch file.
        known: Names of its arguments.
        given: Arguments of the command line, each `name:=value`.
        command: Command line of the process, which contains the launched file.

    Raises:
        ValueError: An argument is unknown; the message names it and the known ones.
    """
    if not _is_asked_for(Path(file), command):
        return
    for name in (argument.partition(":=")[0] for argument in given):
        if name not in known and name not in _OF_LAUNCH:
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(
                f"{Path(file).name} has no argument {name!r}{hint}; it has "
                f"{', '.join(sorted(known))}. Other parameters of the simulator come from "
                "params_file"
            )


def _is_asked_for(file: Path, command: Sequence[str]) -> bool:
    """Return whether `ros2 launch` was called with this file, by package or by path."""
    by_package = ("crazyflow_ros", file.name) in pairwise(command)
    return by_package or any(
        Path(word).name == file.name and Path(word).exists() and Path(word).samefile(file)
        for word in command
    )
