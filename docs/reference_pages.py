"""Makes reference pages from the code: parameters, commands and limits.

python -m docs.reference_pages writes docs/reference/parameters.md and commands.md, and the tables
in limits.md. It needs what the programs need: `make setup` installs it.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import entry_points
from inspect import getsource
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import Declaration, Names, Numbers, declarations
from crazyflow_ros.client.command_line.command import ProgramCommand, SimulatorCommand
from crazyflow_ros.client.command_line.command_list import groups
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime.extension import GROUP

FOLDER = Path(__file__).with_name("reference")
BEGIN, END = "<!-- Written by reference_pages.py. -->", "<!-- Until here. -->"

_TYPES = {bool: "bool", int: "integer", float: "double", str: "string"}
_TYPES |= {Names: "string array", Numbers: "double array"}

PARAMETERS = """\
# Parameters

All parameters of the node, with the texts that `ros2 param describe` shows. Names lead to the
pages that explain them. A parameter can be changed while the node runs only if its last column says
so. A value that is not allowed ends the start with exit code 2 and a message that names it.

    .venv/bin/python -m crazyflow_ros run --ros-args -p drones:=[cf0,cf1] -p wind:=[2.0,0.0,0.0]
    .venv/bin/python -m crazyflow_ros param describe gust_intensity

[reference_pages.py](../reference_pages.py) makes this page from
[node_parameters.py](../../crazyflow_ros/ros/parameters/node_parameters.py).
"""

EXTENSIONS = """\
## Extensions

The node has the parameters of an extension if one of them is given when it starts; otherwise it
does not import the extension.
"""

GUIDES = {
    "drone_model": "dynamics.md",
    "scene": "../guides/scene.md",
    "interfaces": "../guides/scale.md#a-thousand-drones",
    "named_poses": "../guides/simulation_interfaces.md#named-poses",
    "dynamics": "dynamics.md",
    "controller": "dynamics.md#controllers",
    "control": "../concepts/commander_and_firmware.md#raw-commands",
    "policy": "../guides/policies.md",
    "estimator": "../guides/estimation.md",
    "power_distribution": "dynamics.md#power-distribution",
    "battery": "../guides/air.md#an-empty-battery",
    "randomize": "../guides/pipelines.md",
    "wind": "../guides/air.md#wind",
    "forces": "../guides/extend.md#physics-of-your-own-in-the-node",
    "sensors": "../guides/sensors.md#the-sensors-file",
    "headless": "../guides/visualise.md#mujocos-viewer",
    "memory_limit": "limits.md#memory",
    "world_folders": "../guides/simulation_interfaces.md#which-files-requests-may-name",
    "record": "../guides/record.md",
    "door": "../guides/autopilots.md",
    "ros2_control": "../guides/ros2_control.md",
    "ros2_control.robots": "../guides/ros2_control.md#robots-in-the-world",
    "flight": "../concepts/commander_and_firmware.md#how-a-drone-follows-a-command",
    "autopilot": "../guides/autopilots.md",
    "crazyflie": "../guides/crazyflie.md",
    "real": "../guides/crazyswarm2.md",
    "hosts": "../guides/scale.md#several-hosts-one-time",
}
"""Pages that explain a parameter, or a group of parameters."""

COMMANDS = """\
# Commands

All commands of `.venv/bin/python -m crazyflow_ros`, with what `--help` says about each.
[The command line](../guides/command_line.md) shows how to use them.
[reference_pages.py](../reference_pages.py) makes this page from their parsers.

Arguments in brackets may be left out. Commands for a running simulator also have these options:
"""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; empty without rows."""
    head, *lines = (f"| {' | '.join(cells)} |".replace("  ", " ") for cells in (header, *rows))
    return "\n".join([head, "|" + "---|" * len(header), *lines, ""]) if lines else ""


def marked(text: str) -> str:
    """A text in which names are code, and no sign means something to Markdown."""
    text = re.sub(r"\s+", " ", text).replace("*", "\\*").replace("|", "\\|")
    return re.sub(r"(?<![`\w])(~?/?(?:<\w+>|~/)[\w./]*)", r"`\1`", text)


def parameters() -> str:
    """The page of parameters."""
    known = sorted(declarations(Parameters), key=lambda each: "." in each.name)
    own = {declaration.name for declaration in known}
    parts = [PARAMETERS]
    for group, members in groupby(known, lambda each: each.name.rpartition(".")[0]):
        parts += [f"## {group or 'Simulation'}\n", parameter_table("parameter", members)]
    added = [
        declaration
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
        if entry.module.startswith("crazyflow_ros.")
        for declaration in declarations(entry.load(), f"{entry.name}.")
        if declaration.name not in own
    ]
    return "\n".join([*parts, EXTENSIONS, parameter_table("parameter of an extension", added)])


def parameter_table(title: str, known: Iterable[Declaration]) -> str:
    """Parameters, one a row."""
    rows = []
    for each in known:
        name, kind, default, spec = each
        guide = GUIDES.get(name) or GUIDES.get(name.partition(".")[0])
        shown = f"[{', '.join(map(str, default))}]" if isinstance(default, tuple) else str(default)
        values = "" if spec.minimum is None else re.sub("a (whole )?number ", "", each.expected)
        rows.append(
            [
                f"[`{name}`]({guide})" if guide else f"`{name}`",
                _TYPES[kind],
                f"`{shown}`" if default not in ("", ()) else "",
                ", ".join(f"`{choice}`" for choice in spec.choices) or values,
                marked(spec.description),
                "" if spec.read_only else "yes",
            ]
        )
    return table((title, "type", "default", "values", "meaning", "at run time"), rows)


class _Parsing(BaseException):
    """Interrupts a program that begins to parse its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(command: SimulatorCommand | ProgramCommand) -> argparse.ArgumentParser:
    """The parser of a command; a program is interrupted when it begins to parse."""
    if isinstance(command, SimulatorCommand):
        return command.parser()

    def interrupt(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise _Parsing(parser)

    with patch.object(argparse.ArgumentParser, "parse_known_args", interrupt):
        try:
            command.run([])
        except _Parsing as found:
            return found.parser
    raise TypeError(f"{command.name} has no parser")


def commands() -> str:
    """The page of commands."""
    bare = SimulatorCommand("", "", lambda *_: None).parser()
    parts = [COMMANDS, argument_table("option", bare)]
    common = bare._option_string_actions.keys()
    for title, members in groups().items():
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
        parts += [command_section(command, common) for command in members]
    return "\n".join(parts)


def command_section(command: SimulatorCommand | ProgramCommand, common: Collection[str]) -> str:
    """What a command does, examples, and its arguments."""
    parser = parser_of(command)
    omitted = common if isinstance(command, SimulatorCommand) else {"--help"}
    more, _, examples = (parser.epilog or "").partition("examples:\n")
    blocks = [f"### {command.name}", marked(parser.description or ""), marked(more).strip()]
    blocks.append(re.sub("^  ", "    .venv/bin/", examples, flags=re.MULTILINE))
    blocks.append(argument_table("argument", parser, omitted).rstrip())
    return "\n\n".join(filter(None, blocks)) + "\n"


def argument_table(
    title: str, parser: argparse.ArgumentParser, omitted: Iterable[str] = ("--help",)
) -> str:
    """The arguments of a parser, without options that are omitted."""
    rows = []
    for action in parser._actions:
        if set(omitted) & set(action.option_strings):
            continue
        text, default = marked(action.help or ""), action.default
        if isinstance(default, (str, int, float)) and default is not False and default != "":
            text += "" if "default" in text else f", default {default}"
        rows.append([f"`{called(action)}`", text])
    return table((title, "meaning"), rows)


def called(action: argparse.Action) -> str:
    """An argument as one writes it."""
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
    value = str(action.metavar or choices or action.dest)
    if action.option_strings:
        value = value if action.metavar or choices else value.upper()
    elif action.nargs is None:
        return value
    more = {0: "", None: value, "?": f"[{value}]", "*": f"[{value} ...]"}
    shown = more.get(action.nargs, f"{value} [{value} ...]")
    return f"{', '.join(action.option_strings)} {shown}".strip()


def limit_tables() -> str:
    """The constants of `checks.limits`: magnitudes of quantities, and sizes."""
    quantities, sizes = [], []
    for node, below in pairwise(ast.parse(getsource(limits)).body):
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else "_"
        value = None if name.startswith("_") else getattr(limits, name)
        if isinstance(value, limits.Limit) and value.unit:
            named = name.lower().replace("_", " ")
            quantities.append((named, f"{value.most:,.0f} {value.unit}".replace("^2", "²")))
        elif isinstance(value, (int, float)) and isinstance(below, ast.Expr):
            sizes.append((marked(ast.literal_eval(below.value)).rstrip("."), f"{value:,}"))
    return f"{table(('quantity', 'limit'), quantities)}\n{table(('size', 'limit'), sizes)}"


def pages() -> dict[Path, str]:
    """The text of each page."""
    page = FOLDER / "limits.md"
    before, _, rest = page.read_text().partition(BEGIN)
    inside = f"{BEGIN}\n\n{limit_tables()}\n{END}"
    return {
        FOLDER / "parameters.md": parameters(),
        FOLDER / "commands.md": commands(),
        page: before + inside + rest.partition(END)[2],
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
