"""Types of messages and services, by their names in the ROS graph."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


def type_name(kind: Any) -> str:
    """Return the full name of a type of messages or services, such as nav_msgs/msg/Odometry."""
    package, folder, *_ = kind.__module__.split(".")
    return f"{package}/{folder}/{kind.__name__}"


def with_parts(kind: Any) -> dict[str, Any]:
    """Return a type of messages and all types nested in it, by name, the type itself first."""
    return _collect(kind, {})


def _collect(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    if type_name(kind) not in found:
        found[type_name(kind)] = kind
        for field_type in kind.get_fields_and_field_types().values():
            for package, name in re.findall(r"(\w+)/(\w+)", field_type):
                _collect(getattr(import_module(f"{package}.msg"), name), found)
    return found
