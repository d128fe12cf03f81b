"""Serialised messages as subscribers receive them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from rclpy.serialization import deserialize_message, serialize_message

from crazyflow_ros.ros.messages.type_names import with_parts

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


@cache
def _may_be_too_long(kind: Any) -> bool:
    """Return whether the estimate for some messages of a type is too large."""
    parts = with_parts(kind).values()
    fields = [field for part in parts for field in part.get_fields_and_field_types().values()]
    is_bounded = not any(map(_UNBOUNDED.search, fields))
    return is_bounded or any(map(_OVERESTIMATED.search, fields))


def _is_complete(payload: bytes, kind: Any) -> bool:
    """Return whether a serialised message has an end, maybe with more bytes behind it."""
    try:
        deserialize_message(payload, kind)
    except Exception:  # rclpy has no common base class
        return False
    return True
