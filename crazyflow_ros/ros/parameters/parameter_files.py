"""Parameter files: those of users, checked before rcl sees them, and our own.

For a file without the name of a node, or with wrong indentation, rcl says "Sequences can only be
values and not keys". Here, the message has the line and shows the right form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from crazyflow_ros.checks.limits import shown, shown_path, suggestion
from crazyflow_ros.checks.yaml_files import leaves, load_yaml

SECTION = "ros__parameters"
"""Key of the parameters of a node."""
_ARGUMENT = "--params-file"
_EXAMPLE = {"drones": ["cf0", "cf1"], "scene": "floor"}
_LISTED = 3  # names in a message
_KEY = re.compile(r"(?P<blanks>[ \t]*)(?P<key>[^\s#\[\]{},'\"-][^#:]*):(?:\s+(?P<value>[^#]*))?")


def check_parameter_files(arguments: Sequence[str], node: str) -> list[str]:
    """Check the parameter files of a command line.

    Args:
        arguments: Command line of a ROS program.
        node: Name of its node, unless a remapping changes it.

    Returns:
        Warnings of files without parameters for the node.

    Raises:
        ValueError: rcl would not read a file, or would misread it.
    """
    full, warnings = _full_name(arguments, node), []
    for option, path in pairwise(arguments):
        if option != _ARGUMENT:
            continue
        names = [name for name, _ in read_parameter_file(path, full)]
        if not any(_is_for(name, full) for name in names):
            others = f", only of {', '.join(names[:_LISTED])}" if names else ""
            warnings.append(f"{shown_path(path)} has no parameters of {full}{others}")
    return warnings


def read_parameter_file(path: str | Path, node: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the parameters in a file by the name of the node, which may be a pattern.

    Args:
        path: Path of the file; `~` is the home folder.
        node: Full name of a node for the examples in messages.

    Raises:
        ValueError: It is not a parameter file; the message says why, and shows the form.
    """
    file = Path(path).expanduser()
    try:
        content = load_yaml(file)
    except ValueError as error:
        problem = _indentation(file) if file.is_file() else ""
        raise ValueError(f"{problem or error}{_form(node, {}) if problem else ''}") from None
    try:
        sections = list(_sections("", {} if content is None else content))
    except ValueError as error:
        flat = content if isinstance(content, dict) else {}
        raise ValueError(f"{shown_path(path)}: {error}{_form(node, flat)}") from None
    for name, parameters in sections:
        for parameter, value in leaves(parameters):
            try:
                _check(value)
            except ValueError as error:
                where = f"{shown_path(path)}: {parameter} of {name}"
                raise ValueError(f"{where} {error}") from None
    return sections


def parameters_of(node: str, path: str | Path) -> dict[str, Any]:
    """Return the parameters that a file has for a node, by name.

    Args:
        node: Full name of the node, for example /crazyflow.
        path: Path of the file; `~` is the home folder.

    Raises:
        ValueError: It is not a parameter file, or has none for this node.
    """
    sections = read_parameter_file(path, node)
    values: dict[str, Any] = {}
    for name, parameters in sections:
        if _is_for(name, node):
            values |= dict(leaves(parameters))
    if not values:
        have = ", ".join(name for name, _ in sections) or "nothing"
        raise ValueError(f"{shown_path(path)} has no parameters of {node}, but of {have}")
    return values


def file_text(node: str, values: Mapping[str, Any]) -> str:
    """Return the content of a file with the parameters of a node.

    Args:
        node: Full name of the node.
        values: Values by name; those without a value are left out.
    """
    tree: dict[str, Any] = {}
    for name, value in sorted(values.items()):
        *groups, last = name.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
        if value is not None and value != []:  # rcl reads no lists without elements
            branch[last] = value
    return str(yaml.safe_dump({node: {SECTION: tree}}, sort_keys=False, default_flow_style=None))


def _sections(prefix: str, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(content, dict):
        raise ValueError(f"there are no nodes with parameters, but {shown(content)}")
    for key, value in content.items():
        name = f"{prefix}/{str(key).strip('/')}"
        if not isinstance(value, dict):
            place = f"{SECTION} of {prefix}" if prefix else f"the name of a node and {SECTION}"
            raise ValueError(f"{shown(str(key))!r} is not under {place}")
        if SECTION not in value:
            if near := [k for k in map(str, value) if suggestion(k, [SECTION])]:
                raise ValueError(f"{name} has {near[0]!r}; did you mean {SECTION!r}?")
            yield from _sections(name, value)
        elif not isinstance(parameters := value[SECTION] or {}, dict):
            raise ValueError(f"{SECTION} of {name} must be parameters by name")
        elif beside := [key for key in value if key != SECTION]:
            key = shown(str(beside[0]))
            raise ValueError(f"{key!r} is beside {SECTION} of {name}, not under it")
        else:
            yield name, parameters


def _check(value: Any) -> None:
    """Raise ValueError if rcl does not take a value; the text follows its name."""
    if value is None:
        raise ValueError("has no value")
    kinds = {type(element) for element in value} if isinstance(value, list) else set()
    if kinds & {list, dict}:
        raise ValueError(f"has lists in a list, {shown(value)}: write all values in one list")
    if kinds == {int, float}:
        raise ValueError(
            f"has numbers with and without a point, {shown(value)}: write all numbers of a list "
            "with a point, as in [0.0, 0.5]"
        )
    if len(kinds) > 1:
        raise ValueError(f"has values of several types in a list, {shown(value)}")


def _indentation(file: Path) -> str:
    """Return which line of a file is indented wrongly; empty if none is."""
    levels: list[int] = []
    opens = True  # whether the key before has no value, so that others may follow below it
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        found = _KEY.match(line)
        if found is None:
            continue
        place, key = f"{shown_path(file)}, line {number}", shown(found["key"].strip())
        if "\t" in found["blanks"]:
            return f"{place}: {key!r} is indented by a tab: use blanks"
        depth = len(found["blanks"])
        while levels and levels[-1] > depth:
            levels.pop()
        if not levels or levels[-1] < depth:
            if not opens:
                return f"{place}: {key!r} is indented by {depth} blanks, unlike the lines above"
            levels.append(depth)
        opens = not (found["value"] or "").strip()
    return ""


def _form(node: str, content: Mapping[Any, Any]) -> str:
    """Return the form of a parameter file, with parameters of a file that lacks it."""
    while len(content) == 1 and isinstance(inner := next(iter(content.values())), dict):
        content = inner
    own = {k: v for k, v in content.items() if v is not None and not isinstance(v, dict)}
    chosen = dict(list((own or _EXAMPLE).items())[:_LISTED])
    text = yaml.safe_dump({node: {SECTION: chosen}}, default_flow_style=None, sort_keys=False)
    lines = "".join(f"\n  {line}" for line in text.splitlines())
    return f"\nA parameter file looks like this:{lines}"


def _full_name(arguments: Sequence[str], node: str) -> str:
    """Return the name of a node with its namespace, after the remappings of a command line."""
    namespace = ""
    for argument in arguments:
        name, separator, value = argument.partition(":=")
        if separator and name in ("__node", "__name"):
            node = value
        elif separator and name == "__ns":
            namespace = value.rstrip("/")
    return f"{namespace}/{node}"


def _is_for(pattern: str, node: str) -> bool:
    parts = re.split(r"(/\*\*|/\*)", pattern)
    wild = {"/**": r"(/\w+)*", "/*": r"/\w+"}
    return re.fullmatch("".join(wild.get(p, re.escape(p)) for p in parts), node) is not None
