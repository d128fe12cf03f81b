"""Message definitions as text in the format of bag files (encoding `ros2msg`)."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from crazyflow_ros.resources import find

_SEPARATOR = "=" * 80


def type_name(kind: Any) -> str:
    """Return the full name of a message type, for example "nav_msgs/msg/Odometry"."""
    package, folder, *_ = kind.__module__.split(".")
    return f"{package}/{folder}/{kind.__name__}"


def definition(kind: Any) -> str:
    """Return the definition of a message type, followed by those of all nested types.

    Source: https://mcap.dev/spec/registry, "ros2msg".

    Raises:
        FileNotFoundError: A package is installed without its definitions.
    """
    own, *others = _with_parts(kind, {}).values()
    parts = [_text(own)]
    for part in others:
        package, _, name = type_name(part).split("/")
        parts += [_SEPARATOR, f"MSG: {package}/{name}", _text(part)]
    return "\n".join(parts)


def _with_parts(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Collect a type and all types nested in it, by name."""
    if type_name(kind) not in found:
        found[type_name(kind)] = kind
        for field_type in kind.get_fields_and_field_types().values():
            for package, name in re.findall(r"(\w+)/(\w+)", field_type):
                _with_parts(getattr(import_module(f"{package}.msg"), name), found)
    return found


def _text(kind: Any) -> str:
    package, folder, name = type_name(kind).split("/")
    code = import_module(package).__file__
    assert code is not None
    return find(Path(code).parent, (folder, f"{name}.msg")).read_text().rstrip()
