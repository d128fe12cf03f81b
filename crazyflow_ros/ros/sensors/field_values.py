"""Conversion of values in YAML files to the types of configurations."""

from __future__ import annotations

import math
import types
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_UNLIMITED = ("saturation", "max_distance", "max_range")  # fields that may be infinite


def converted(value: Any, hint: Any, name: str) -> Any:
    """Convert a value of YAML to the type that a hint asks for.

    Args:
        value: The value.
        hint: The type hint of a field.
        name: Name of the field, for error messages.

    Raises:
        TypeError: The value has another type.
        ValueError: A number is not finite where it has to be.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        return _dataclass(value, hint, name)
    if origin in (Union, types.UnionType):
        for choice in arguments:
            with suppress(TypeError):
                return converted(value, choice, name)
    elif origin is Literal:
        if value in arguments:
            return value
    elif origin is not None and isinstance(value, list | tuple):
        hints = arguments
        if origin is not tuple or arguments[-1] is ...:
            hints = arguments[:1] * len(value)
        if len(value) == len(hints):
            return tuple(converted(*pair, name) for pair in zip(value, hints))
    elif hint is float:
        if type(value) in (int, float, str):  # YAML reads 1e-6, without a point, as text
            return _number(value, name)
    elif type(value) is hint:
        return value
    expected = getattr(hint, "__name__", str(hint)) if origin is None else str(hint)
    raise TypeError(f"{name}: expected {expected.replace('typing.', '')}, got {value!r}")


def _dataclass(value: dict[Any, Any], kind: type, name: str) -> Any:
    hints = get_type_hints(kind)
    if unknown := sorted(value.keys() - hints.keys(), key=str):
        raise ValueError(f"{name}: expected {', '.join(hints)}, got {unknown}")
    try:
        return kind(**{k: converted(v, hints[k], f"{name}.{k}") for k, v in value.items()})
    except TypeError as error:  # no TypeError, so that a union does not try its next type
        raise ValueError(str(error)) from None


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise TypeError(f"{name}: expected a number, got {value!r}") from None
    is_limit = name.rpartition(".")[2] in _UNLIMITED
    if not math.isfinite(number) and not (is_limit and number == math.inf):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    return number
