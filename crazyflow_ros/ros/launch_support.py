"""What our launch files ask for beside `launch`, which does not do it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

READY = "ready: "
"""With what the simulator's log entry begins when all of its topics are there."""
_OF_LAUNCH = ("launch-prefix", "launch-prefix-filter")  # which it adds itself


def refuse_unknown(
    file: str, known: Collection[str], given: Iterable[str], command: Sequence[str]
) -> None:
    """Refuse arguments that nobody knows, which `ros2 launch` takes in silence.

    Those of a launch file that includes ours are its own: what they may be is not known here.

    Args:
        file: Path of the launch file.
        known: Names of its arguments.
        given: Arguments of the command line, `name:=value` each.
        command: The command line of the process, which tells the file that was asked for.

    Raises:
        ValueError: There is no such argument; the message names it, and those that there are.
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
    """Whether it is this file that `ros2 launch` was given, by its package or by its path."""
    by_package = ("crazyflow_ros", file.name) in pairwise(command)
    return by_package or any(
        Path(word).name == file.name and Path(word).exists() and Path(word).samefile(file)
        for word in command
    )
