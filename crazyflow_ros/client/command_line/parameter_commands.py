"""Commands for the parameters of the simulator."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crazyflow_ros.client.command_line import text
from crazyflow_ros.client.command_line.command import SimulatorCommand, UsageError, argument

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

_NAME = argument("name", help="name of a parameter, for example wind")


def _list(simulation: SimulatorClient, options: Namespace) -> str:
    values = {name: text.value(v) for name, v in simulation.parameters.all().items()}
    found = text.matching(values, options.pattern)
    return text.table([*found.items()]) if found else f"no parameter contains {options.pattern}"


def _set(simulation: SimulatorClient, options: Namespace) -> str:
    from crazyflow_ros.client.values import parsed

    try:
        value = parsed(options.value)
    except ValueError:
        value = options.value  # a text
    if isinstance(value, dict) or value is None:
        value = options.value
    simulation.warnings()
    values = simulation.parameters.set({options.name: value})
    return _said(values)


def _describe(simulation: SimulatorClient, options: Namespace) -> str:
    found = simulation.parameters.describe(options.name)
    value = text.value(simulation.parameters.get(options.name))
    rows = [
        (found.name, value),
        ("meaning", found.text),
        ("values", f"{found.kind}{f', {found.constraint}' if found.constraint else ''}"),
        ("change", "only at the start" if found.is_fixed else "while running"),
    ]
    return text.table(rows)


def _dump(simulation: SimulatorClient, options: Namespace) -> str | None:
    from crazyflow_ros.ros.parameters import file_text

    content = file_text(simulation.full_name, simulation.parameters.all())
    if options.file is None:
        sys.stdout.write(content)
        return None
    try:
        options.file.write_text(content)
    except OSError as error:
        raise UsageError(f"{options.file} cannot be written: {error.strerror}") from None
    return f"parameters written to {options.file}"


def _load(simulation: SimulatorClient, options: Namespace) -> str:
    from crazyflow_ros.ros.parameters import parameters_of

    try:
        given = parameters_of(simulation.full_name, options.file)
    except ValueError as error:
        raise UsageError(str(error)) from None
    before = simulation.parameters.all()
    changes = {name: v for name, v in given.items() if name not in before or v != before[name]}
    if not changes:
        return f"all {len(given)} parameters of {options.file} have these values already"
    return _said(simulation.parameters.set(changes))


def _said(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} is {text.value(value)}" for name, value in values.items())


COMMANDS = (
    SimulatorCommand(
        "param list",
        "list the parameters with their values",
        _list,
        (argument("pattern", nargs="?", help="text that a line contains, * is any text"),),
        ("param list", "param list flight.", "param list 'rates*imu'"),
    ),
    SimulatorCommand(
        "param get",
        "print a parameter",
        lambda simulation, options: text.value(simulation.parameters.get(options.name)),
        (_NAME,),
        ("param get real_time_factor",),
    ),
    SimulatorCommand(
        "param set",
        "set a parameter that can be set while the simulator runs",
        _set,
        (_NAME, argument("value", help="value in YAML")),
        ("param set real_time_factor 2.0", "param set wind '[0.0, 5.0, 0.0]'"),
    ),
    SimulatorCommand(
        "param describe",
        "print what a parameter means, and which values it may have",
        _describe,
        (_NAME,),
        ("param describe gust_intensity",),
    ),
    SimulatorCommand(
        "param dump",
        "write all parameters as a file for --params-file",
        _dump,
        (argument("file", nargs="?", type=Path, help="YAML file; none: to the terminal"),),
        ("param dump", "param dump simulator.yaml"),
    ),
    SimulatorCommand(
        "param load",
        "set parameters to the values of a file, all or none",
        _load,
        (argument("file", type=Path, help="YAML file as param dump writes it"),),
        ("param load simulator.yaml",),
    ),
)
