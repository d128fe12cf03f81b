"""Files of ROS parameters, as `--params-file` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from crazyflow_ros.ros.launch_support import read_nodes

_KEY = "ros__parameters"


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
    return str(yaml.safe_dump({node: {_KEY: tree}}, sort_keys=False, default_flow_style=None))


def read_parameters(path: Path, node: str) -> dict[str, Any]:
    """Return the parameters that a file has for a node, by name.

    Args:
        path: The file.
        node: Full name of the node, for example /crazyflow.

    Raises:
        ValueError: It is not a file of parameters, or has none for this node.
    """
    try:
        nodes = read_nodes("parameters", str(path))
    except FileNotFoundError as error:
        raise ValueError(str(error)) from None
    values: dict[str, Any] = {}
    for pattern, content in nodes.items():
        # ** is any part of a name, * one word of it.
        if fnmatchcase(node, f"/{str(pattern).lstrip('/')}".replace("**", "*")):
            values |= _flat(content.get(_KEY, {}))
    if not values:
        have = ", ".join(map(str, nodes)) or "nothing"
        raise ValueError(f"{path} has no parameters of {node}, but of {have}")
    return values


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            values |= _flat(value, f"{prefix}{name}.")
        else:
            values[f"{prefix}{name}"] = value
    return values
