"""The tree of crazyswarm2's configuration, from its files or parameters of the node. No ROS."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.yaml_files import leaves, load_yaml

Tree = Mapping[str, Any]

ROBOT_DESCRIPTION, POSES_DEADLINE = "robot_description", "poses_qos_deadline"
POSES_FRAME = "poses_frame_id"
_NAMES = "robots", "robot_types", "all", "fileversion", "warnings", "firmware_params", "sim"
NAMES = (*_NAMES, ROBOT_DESCRIPTION, POSES_DEADLINE, POSES_FRAME)
"""Names at the top of the tree."""

_INTEGERS = range(-(2**63), 2**63)  # that ROS can express
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")  # text in YAML, a number in ROS


def read_files(crazyflies: str, server: str, motion_capture: str) -> dict[str, Any]:
    """Read crazyswarm2's files into one tree. Paths may be empty.

    Args:
        crazyflies: Path of crazyflies.yaml.
        server: Path of server.yaml.
        motion_capture: Path of motion_capture.yaml; only frame and rate of the poses are used.

    Raises:
        ParameterError: A file cannot be read, or has other content.
    """
    tree = dict(_of_file("crazyflies_yaml_file", crazyflies, ()))
    if crazyflies and "robots" not in tree:
        raise ParameterError("crazyflies_yaml_file", f"{shown_path(crazyflies)} has no robots")
    tree |= _of_file("server_yaml_file", server, ("/crazyflie_server", "ros__parameters"))
    path = ("/motion_capture_tracking", "ros__parameters")
    topics = table(_of_file("motion_capture_yaml_file", motion_capture, path), "topics")
    qos = table(table(topics, "poses"), "qos")
    found = {POSES_DEADLINE: qos.get("deadline"), POSES_FRAME: topics.get("frame_id")}
    return tree | {name: value for name, value in found.items() if value is not None}


def _of_file(parameter: str, path: str, keys: tuple[str, ...]) -> Tree:
    if not path:
        return {}
    try:
        content = load_yaml(path)
    except ValueError as error:
        raise ParameterError(parameter, str(error)) from None
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    if not isinstance(content, dict):
        needed = " / ".join(keys) or "robots"
        raise ParameterError(parameter, f"{shown_path(path)} has no {needed}")
    return content


def flattened(tree: Tree) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each parameter of a tree.

    Raises:
        ParameterError: A parameter cannot have such a value.
    """
    for name, value in leaves(tree):
        if not name:
            raise ParameterError("a setting", "a name before the colon", value)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        elif isinstance(value, list):
            kinds = {type(element) for element in value}
            if kinds == {int, float}:
                value = [float(element) for element in value]
            elif len(kinds) > 1 or not kinds <= {bool, int, float, str}:
                raise ParameterError(name, "a list of numbers or texts", value)
        elif not isinstance(value, bool | int | float | str | None):
            raise ParameterError(name, "a number, a text or a list", value)
        if not all(number in _INTEGERS for number in _integers(value)):
            raise ParameterError(name, "whole numbers of 64 bits", value)
        if value not in (None, []):  # which parameters cannot express
            yield name, value


def _integers(value: Any) -> Iterator[int]:
    for element in value if isinstance(value, list) else [value]:
        if isinstance(element, int):
            yield element


def unflattened(parameters: Tree) -> dict[str, Any]:
    """Return the tree of parameters, the inverse of `flattened`; others are left out.

    Raises:
        ParameterError: A name denotes both a value and a group.
    """
    tree: dict[str, Any] = {}
    for name, value in sorted(parameters.items()):
        *groups, last = name.split(".")
        if (groups or [last])[0] not in NAMES:
            continue
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise ParameterError(name, f"{group} has a value, so it cannot be a group, too")
        place[last] = list(value) if isinstance(value, array) else value
    return tree


def merge(into: dict[str, Any], tree: Tree) -> None:
    """Merge a tree into another one, whose values it overrides."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            below = into.get(key)
            into[key] = below = dict(below) if isinstance(below, Mapping) else {}
            merge(below, value)
        else:
            into[key] = value


def table(tree: Tree, key: str, where: str = "") -> Tree:
    """Return a part of a tree; empty if it is missing."""
    table = tree.get(key)
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise ParameterError(f"{where}{key}", "settings by name", table)
    return table


def get(tree: Tree, key: str, name: str, kind: type, where: str) -> Any:
    """Return a value of a tree.

    Args:
        tree: The tree.
        key: Part of the tree; empty for the tree itself.
        name: Name of the value.
        kind: Its type, bool or str.
        where: Place of the tree for error messages.

    Raises:
        ParameterError: The value is missing, or of another type.
    """
    value = (table(tree, key, where) if key else tree).get(name)
    if type(value) is not kind:
        expected = {bool: "true or false", str: "a text"}[kind]
        full_name = ".".join(filter(None, (where.rstrip("."), key, name)))
        raise ParameterError(full_name, expected, value)
    return value
