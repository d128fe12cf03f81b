"""Requests as JSON values: the name of a method and its arguments."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.runtime import (
    BatteryCharge,
    Checkpoint,
    DroneState,
    MotorEfficiency,
    ResetScope,
    Wind,
)

_CLASSES = {cls.__name__: cls for cls in (DroneState, Wind, MotorEfficiency, BatteryCharge)}
_PLAIN = (bool, int, float, str, type(None))


def encoded(value: Any) -> Any:
    """Return an argument as JSON value.

    Raises:
        ValueError: It cannot be sent.
    """
    name = type(value).__name__
    if isinstance(value, ResetScope):
        return {"scope": value.value}
    if name in _CLASSES:
        return {name: {field.name: encoded(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, Checkpoint):
        return {"checkpoint": base64.b64encode(value.to_bytes()).decode()}
    value = plain(value)  # arrays
    if isinstance(value, Mapping):
        return {"by_name": {key: encoded(one) for key, one in value.items()}}
    if isinstance(value, list):
        return [encoded(one) for one in value]
    if isinstance(value, _PLAIN):
        return value
    raise ValueError(f"other simulators cannot be sent {shown(value)}")


def decoded(value: Any) -> Any:
    """Return an argument from its JSON value; the method that takes it checks it.

    Raises:
        ValueError: `encoded` never returns such a value.
    """
    if isinstance(value, list):
        return [decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"an argument has one kind, got {shown(value)}")
    ((kind, content),) = value.items()
    try:
        if kind == "scope":
            return ResetScope(content)
        if kind == "checkpoint":
            return Checkpoint.load(io.BytesIO(base64.b64decode(content, validate=True)))
        arguments = {name: decoded(one) for name, one in content.items()}
        if kind == "by_name":
            return arguments
        if kind in _CLASSES:
            return _CLASSES[kind](**arguments)
    except (AttributeError, TypeError, binascii.Error) as error:
        raise ValueError(f"{shown(kind)} cannot be read: {error}") from None
    raise ValueError(unknown("kind of argument", kind, ["scope", "checkpoint", *_CLASSES]))


def call(name: str, arguments: Sequence[Any], by_name: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as JSON value.

    Raises:
        ValueError: An argument cannot be sent.
    """
    return {"call": name, "with": encoded(list(arguments)), "by_name": encoded(dict(by_name))}


def read_call(request: Mapping[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Return name and arguments of a request.

    Raises:
        ValueError: The value is no request.
    """
    parts = ("call", "with", "by_name")
    name, *arguments = (decoded(request.get(part)) for part in parts)
    if [type(name), *map(type, arguments)] != [str, list, dict]:
        raise ValueError(f"a request has the entries {', '.join(parts)}, got {shown(request)}")
    return name, *arguments
