"""Checks for the launch files that `launch` does not offer."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from crazyflow_ros.checks.limits import suggestion
from crazyflow_ros.checks.yaml_files import load_yaml, parse_yaml
from crazyflow_ros.ros.parameters.parameter_files import read_parameter_file

READY = "ready: "
"""Start of the log message that announces that all topics of the simulator exist."""
_OF_LAUNCH = ("launch-prefix", "launch-prefix-filter")  # added by launch itself


def refuse_unknown(file: str, known: Collection[str], given: Iterable[str]) -> None:
    """Refuse unknown arguments, which launch silently accepts.

    Args:
        file: Path of the launch file.
        known: Names of its arguments.
        given: Names of the arguments that it is given.

    Raises:
        ValueError: An argument is unknown; the message names it and the known ones.
    """
    for name in given:
        if name not in known and name not in _OF_LAUNCH:
            hint = f" ({near})" if (near := suggestion(name, known)) else ""
            raise ValueError(
                f"{Path(file).name} has no argument {name!r}{hint}; it has "
                f"{', '.join(sorted(known))}. Other parameters of the simulator come from "
                "params_file"
            )


def drone_names(given: Mapping[str, str]) -> list[str]:
    """Return the drones that the arguments `drones` or `n_drones` name; none if both are absent.

    Raises:
        ValueError: A name is invalid, two are the same, or `n_drones` is not a number.
    """
    text = given.get("drones", "")
    if not text:
        number = whole(given, "n_drones") if given.get("n_drones") else 0
        return [f"cf{index}" for index in range(number)]
    names = [name.strip(" '\"") for name in text.strip("[] ").split(",")]
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            raise ValueError(f"drones: expected names like [cf0,cf1], got {name!r} in {text!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"drones: names must differ, got {text!r}")
    return names


def whole(given: Mapping[str, str], name: str, least: int = 1) -> int:
    """Return an argument that is a whole number.

    Raises:
        ValueError: It is not a whole number, or smaller than `least`.
    """
    text = given[name]
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {text!r}")
    return int(text)


def factor(given: Mapping[str, str], name: str) -> float:
    """Return an argument that is a number of at least 0.

    Raises:
        ValueError: It is not such a number.
    """
    try:
        value = float(given[name])
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{name}: expected a number of at least 0, got {given[name]!r}")
    return value


def flag(given: Mapping[str, str], name: str) -> bool:
    """Return an argument that is true or false.

    Raises:
        ValueError: It is neither.
    """
    if given[name] not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {given[name]!r}")
    return given[name] == "true"


def place(given: Mapping[str, str], name: str) -> tuple[float, float, float]:
    """Return an argument that is a latitude, a longitude [degrees] and an altitude [m].

    Raises:
        ValueError: It does not consist of three numbers.
    """
    try:
        latitude, longitude, altitude = map(float, given[name].split(","))
    except ValueError:
        text = "expected latitude, longitude and altitude as 47.4,8.5,488"
        raise ValueError(f"{name}: {text}, got {given[name]!r}") from None
    return latitude, longitude, altitude


def settings(given: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return an argument that is a YAML mapping, such as {port: 4570}; empty if it is absent.

    Raises:
        ValueError: It is something else.
    """
    found = parse_yaml(given[name], name) if given[name] else {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{name}: expected values by name as {{port: 4570}}, got {given[name]!r}")
    return found


def read_nodes(argument: str, path: str) -> dict[str, dict[str, Any]]:
    """Return the content of a parameter file, by name of the node.

    Args:
        argument: Name of the argument that gave the path.
        path: Path of the file; `~` is the home folder.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not a file of parameters.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"{argument}: there is no file {str(file)!r}")
    try:
        read_parameter_file(file, "/crazyflow")
        nodes: dict[str, dict[str, Any]] = load_yaml(file) or {}
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None
    return nodes
