"""Conversion of ROS messages to and from plain values, as YAML has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import yaml
from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractString,
    AbstractWString,
    BasicType,
    NamespacedType,
)

from crazyflow_ros.checks.limits import shown, suggestion
from crazyflow_ros.ros.messages import type_name

_FLOATS = ("float", "double", "long double")
_SIGNED = ("int8", "int16", "int32", "int64")


def values_of_message(message: Any) -> Any:
    """Convert a message or a field to plain values."""
    if hasattr(message, "get_fields_and_field_types"):
        names = message.get_fields_and_field_types()
        return {name: values_of_message(getattr(message, name)) for name in names}
    if isinstance(message, float):
        return float(message)  # the numbers of an array are NumPy's
    if isinstance(message, str | bool | int):
        return message
    if isinstance(message, bytes):  # one octet, which arrays have one by one
        return message[0] if len(message) == 1 else list(message)
    return [values_of_message(element) for element in message]


def text_of_message(message: Any) -> str:
    """Return a message as YAML."""
    values = values_of_message(message)
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True) if values else ""


def parsed(text: str) -> Any:
    """Parse a YAML value of a command line.

    Raises:
        ValueError: It is not YAML of plain values.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problem = getattr(error, "problem", None) or str(error)
        raise ValueError(f"{shown(text)!r} is not YAML: {problem}") from None


def message_from_values(kind: Any, values: Any, where: str = "") -> Any:
    """Make a message of plain values; fields that are left out keep their defaults.

    Args:
        kind: Type of the message, or of a request.
        values: Values of its fields by name; None for none.
        where: Path of the message within another one, for errors.

    Raises:
        ValueError: A field does not exist, or cannot have this value; the error has its path.
    """
    message = kind()
    if values is None:
        return message
    kinds = dict(zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES))
    own_name = type_name(kind).rpartition("/")[2]
    if not isinstance(values, Mapping):
        example = next(iter(kinds), "")
        form = f"{{{example}: ...}}" if example else "{}"
        raise ValueError(f"{where or own_name} is not a value but has fields: write {form}")
    for name, value in values.items():
        if name not in kinds:
            hint = suggestion(str(name), kinds) or f"it has {', '.join(kinds) or 'none'}"
            raise ValueError(f"{where or own_name} has no field {shown(str(name))!r}; {hint}")
        path = f"{where}.{name}" if where else str(name)
        setattr(message, name, _converted(kinds[name], value, path))
    return message


def _converted(kind: Any, value: Any, path: str) -> Any:
    if isinstance(kind, NamespacedType):
        package, folder = kind.namespaces
        nested = getattr(import_module(f"{package}.{folder}"), kind.name)
        return message_from_values(nested, value, path)
    if isinstance(kind, AbstractNestedType):
        return _list(kind, value, path)
    if isinstance(kind, AbstractString | AbstractWString):
        if not isinstance(value, str):
            raise ValueError(f"{path} is a text: write {str(value)!r} instead of {shown(value)}")
        return value
    assert isinstance(kind, BasicType)
    return _basic(kind.typename, value, path)


def _list(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(f"{path} is a list: write [...] instead of {shown(value)}")
    size = getattr(kind, "size", None)  # of an array
    most = getattr(kind, "maximum_size", None)
    if size is not None and len(value) != size:
        raise ValueError(f"{path} has {size} elements, not {len(value)}")
    if most is not None and len(value) > most:
        raise ValueError(f"{path} has at most {most} elements, not {len(value)}")
    return [_converted(kind.value_type, one, f"{path}[{i}]") for i, one in enumerate(value)]


def _basic(name: str, value: Any, path: str) -> Any:
    if name == "boolean":
        if not isinstance(value, bool):
            raise ValueError(f"{path} is true or false, not {shown(value)}")
        return value
    if name in _FLOATS:
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            return float(value)  # a text like 1e-3 is no number in YAML, which wants 1.0e-3
        except (ValueError, OverflowError):
            raise ValueError(f"{path} is a number, not {shown(value)}") from None
    low, high = _range(name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{path} is a whole number from {low} to {high}, not {shown(value)}")
    return bytes([value]) if name == "octet" else value


def _range(name: str) -> tuple[int, int]:
    if name in _SIGNED:
        half = 1 << (int(name.removeprefix("int")) - 1)
        return -half, half - 1
    bits = int(name.removeprefix("uint")) if name.startswith("uint") else 8
    return 0, (1 << bits) - 1
