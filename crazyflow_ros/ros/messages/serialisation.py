"""Serialised messages as subscribers receive them, and types by their names in the ROS graph."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

from rclpy.serialization import deserialize_message, serialize_message

from crazyflow_ros.checks.limits import shown

_MARKERS = "visualization_msgs/msg/MarkerArray"
_LARGE = {"std_msgs/msg/String": 1 << 27, _MARKERS: 1 << 24}  # bytes; a checkpoint, and a scene
_MOST = 1 << 20  # bytes of other messages
_MARKER = 100  # bytes of a marker, at least
_UNBOUNDED = re.compile(r"string$|sequence<[^,]*>$")
_OVERESTIMATED = re.compile(r"sequence<(double|u?int64)\b")


def serialised(message: Any) -> bytes:
    """Serialise a message as a publisher sends it.

    rclpy's `serialize_message` alone returns as many bytes as rmw_fastrtps estimates before it
    writes them, and strict readers refuse those at the end that were not written. The estimate
    aligns the elements of a sequence of 8-byte numbers even if there are none, and rounds the size
    of a type of bounded size up to 4 bytes.
    """
    kind: Any = type(message)
    payload = serialize_message(message)
    if _may_be_too_long(kind):
        while _is_complete(payload[:-1], kind):
            payload = payload[:-1]
    return payload


def deserialised(payload: bytes, kind: Any) -> Any:
    """Deserialise a message that may hold anything, as those of a file.

    Elements take memory as soon as a message says how many there are: a byte of an array of markers
    can take 700.

    Raises:
        ValueError: It is damaged, or too large.
    """
    name = type_name(kind)
    most = _LARGE.get(name, _MOST)
    if len(payload) > most:
        raise ValueError(f"a {name} of {len(payload)} bytes, expected at most {most}")
    if name == _MARKERS:
        count = int.from_bytes(payload[4:8], "little" if payload[1:2] == b"\1" else "big")
        if count * _MARKER > len(payload):
            raise ValueError(f"a {name} of {count} markers in {len(payload)} bytes")
    try:
        return deserialize_message(payload, kind)
    except Exception as error:  # rclpy has no common base class
        raise ValueError(f"a {name} cannot be read: {shown(str(error), 200)}") from None


@cache
def _may_be_too_long(kind: Any) -> bool:
    """Return whether the estimate for some messages of a type is too large."""
    parts = with_parts(kind).values()
    fields = [field for part in parts for field in part.get_fields_and_field_types().values()]
    is_bounded = not any(map(_UNBOUNDED.search, fields))
    return is_bounded or any(map(_OVERESTIMATED.search, fields))


def _is_complete(payload: bytes, kind: Any) -> bool:
    """Return whether a serialised message is complete, perhaps followed by more bytes."""
    try:
        deserialize_message(payload, kind)
    except Exception:  # rclpy has no common base class
        return False
    return True


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
