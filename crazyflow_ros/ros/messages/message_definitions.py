"""Message definitions as text in the format of bag files (encoding `ros2msg`)."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from crazyflow_ros.checks import limits
from crazyflow_ros.resources import find
from crazyflow_ros.ros.messages.serialisation import type_name, with_parts

_SEPARATOR = "=" * 80


@cache
def type_of(name: str) -> Any:
    """Return the type of a message or service, the inverse of `type_name`.

    Only installed messages and services are imported, so the name may come from untrusted sources.

    Args:
        name: For example "std_srvs/srv/SetBool"; "geometry_msgs/Twist" is a message, too.

    Raises:
        ValueError: There is no such type.
    """
    package, _, rest = name.partition("/")
    folder, _, kind = rest.rpartition("/")
    folder = folder or "msg"
    sourced = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    prefixes = [Path(prefix) for prefix in (*sourced, sys.prefix) if prefix]
    file = Path("share", package, folder, f"{kind}.{folder}")
    is_name = re.fullmatch(r"[a-z]\w*/((msg|srv)/)?[A-Z]\w*", name, re.ASCII)
    if not is_name or not any((prefix / file).is_file() for prefix in prefixes):
        expected = "an installed type such as geometry_msgs/msg/Twist"
        raise ValueError(f"expected {expected}, got {limits.shown(name)!r}")
    return getattr(import_module(f"{package}.{folder}"), kind)


def definition(kind: Any) -> str:
    """Return the definition of a message type, followed by those of all nested types.

    Source: https://mcap.dev/spec/registry, "ros2msg".

    Args:
        kind: The type of a message, or of the request or response of a service.

    Raises:
        FileNotFoundError: A package is installed without its definitions.
    """
    own, *others = with_parts(kind).values()
    parts = [_text(own)]
    for part in others:
        package, _, name = type_name(part).split("/")
        parts += [_SEPARATOR, f"MSG: {package}/{name}", _text(part)]
    return "\n".join(parts)


def _text(kind: Any) -> str:
    package, folder, name = type_name(kind).split("/")
    service, _, part = name.rpartition("_")
    code = import_module(package).__file__
    assert code is not None
    file = f"{name}.msg" if folder == "msg" else f"{service}.{folder}"
    text = find(Path(code).parent, (folder, file)).read_text()
    if folder != "msg":
        text = re.split(r"^---\s*$", text, flags=re.MULTILINE)[part == "Response"]
    return text.strip()
