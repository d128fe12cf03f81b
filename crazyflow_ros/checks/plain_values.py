"""Conversion of plain values into dataclasses: from ROS parameters, YAML and command lines.

A parameter is a field `name: Annotated[type, Spec(...)] = default`, or a field of a dataclass in a
field; then its name begins with that field's name and a dot. A subclass repeats a field to change
its default, and need not repeat its `Spec`.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import EnumType
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from crazyflow_ros.checks import limits

T = TypeVar("T")

Names = tuple[str, ...]
Numbers = tuple[float, ...]

_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    dict: "values by name",
    Names: "a list of names such as [cf0, cf1]",
    Numbers: "a list of numbers",
}
_PLURALS = {bool: "values true or false", int: "whole numbers", float: "numbers", str: "strings"}
_NONE = object()
_NOTHING = type(None)
_SHOWN = 600  # characters of an expectation or a refused value in an error


class ParameterError(ValueError):
    """A refused parameter; the message begins with its name.

    Args:
        name: Name of the parameter.
        text: The problem; or, with a value, a noun for the allowed values.
        value: The value.
    """

    def __init__(self, name: str, text: str, value: Any = _NONE) -> None:
        if value is not _NONE:
            text = f"expected {_cut(text)}, got {_cut(repr(value))}"
        super().__init__(f"{name}: {text}")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


@dataclass(frozen=True)
class Spec:
    """Description and allowed values of a parameter."""

    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()
    otherwise: Callable[[str], str] | None = None
    """Converts a value that is none of the choices, or raises ValueError."""
    read_only: bool = True
    """Whether the value is fixed at the start."""
    check: Callable[[str, Any], object] | None = None
    """Receives the name and a value within the range. Raises ValueError if it is unusable; the
    message names the parameter."""
    least: float | None = None
    """The smallest value but 0, if the range begins at 0."""


class Declaration(NamedTuple):
    """One parameter."""

    name: str
    kind: Any
    """bool, int, float, str, Names or Numbers."""
    default: Any
    spec: Spec

    @property
    def expected(self) -> str:
        """The allowed values in words."""
        spec, kind = self.spec, _KINDS[self.kind]
        if spec.choices:
            return f"one of {', '.join(spec.choices)}"
        if spec.minimum is None:
            return kind
        zero, low = ("", spec.minimum) if spec.least is None else ("0, or ", spec.least)
        if spec.maximum is None:
            return f"{zero}{kind} of at least {_bound(low)}"
        return f"{zero}{kind} from {_bound(low)} to {_bound(spec.maximum)}"

    def checked(self, value: Any) -> Any:
        """Return the value in the declared type.

        Raises:
            ParameterError: The value is not allowed.
        """
        try:
            converted = convert(value, self.kind, self.name)
        except TypeError:
            raise ParameterError(self.name, self.expected, value) from None
        if self.kind is str:
            limits.text(self.name, converted)
        low, high = self.spec.minimum, self.spec.maximum
        inside = low is None or (
            low <= converted < math.inf and (high is None or converted <= high)
        )
        inside &= self.spec.least is None or converted == 0 or converted >= self.spec.least
        is_other = bool(self.spec.choices) and converted not in self.spec.choices
        if is_other and self.spec.otherwise is not None:
            return self.spec.otherwise(converted)
        if is_other:
            near = limits.suggestion(str(value), self.spec.choices)
            got = f"{_cut(repr(value))}{'; ' if near else ''}{near}"
            raise ParameterError(self.name, f"expected {self.expected}, got {got}")
        if not inside:
            raise ParameterError(self.name, self.expected, value)
        if self.spec.check is not None:
            self.spec.check(self.name, converted)
        return converted

    def parsed(self, text: str) -> Any:
        """Return the value of a command-line argument (a number, text, true or false).

        Raises:
            ValueError: The value is not allowed.
        """
        if self.kind is bool:
            return self.checked({"true": True, "false": False}.get(text, text))
        if self.kind not in (int, float):
            return self.checked(text)
        try:
            return self.checked(self.kind(text))
        except ValueError:
            raise ParameterError(self.name, self.expected, text) from None


def _bound(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.10g}"


def plain(value: Any) -> Any:
    """Return a value with lists in place of tuples and arrays, as JSON, YAML and rclpy take it."""
    if hasattr(value, "tolist"):  # of NumPy
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(element) for key, element in value.items()}
    return [plain(element) for element in value] if isinstance(value, list | tuple) else value


def declarations(cls: type, prefix: str = "") -> Iterator[Declaration]:
    """Yield all parameters of a dataclass."""
    hints = _hints(cls)
    for field in fields(cls):
        name, hint = f"{prefix}{field.name}", hints[field.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from declarations(hint, f"{name}.")
        for spec in getattr(hint, "__metadata__", ()):
            yield Declaration(name, hint.__origin__, _default(field), spec)


def check(parameters: Any) -> None:
    """Check all parameters of a dataclass instance.

    Raises:
        ValueError: A parameter is not allowed.
    """
    for declaration in declarations(type(parameters)):
        declaration.checked(attrgetter(declaration.name)(parameters))


def values_of(parameters: Any, prefix: str = "") -> dict[str, Any]:
    """Return all parameters of a dataclass instance by name, the inverse of `from_values`."""
    names = [declaration.name for declaration in declarations(type(parameters))]
    return {f"{prefix}{name}": attrgetter(name)(parameters) for name in names}


def from_values(cls: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass instance from all its parameters by name.

    Raises:
        ParameterError: A value is missing, unknown or not allowed.
    """
    known = {d.name: d for d in declarations(cls)}
    for name in known.keys() ^ values.keys():
        what = "has no value" if name in known else "is not a parameter"
        raise ParameterError(name, f"{what}; another version of this package wrote the values")
    return filled(cls, {name: d.checked(values[name]) for name, d in known.items()})


def filled(cls: type[T], values: Mapping[str, Any], prefix: str = "") -> T:
    """Build a dataclass instance from checked values by name; other fields keep their defaults."""
    hints = get_type_hints(cls)
    arguments = {}
    for field in fields(cls):  # type: ignore[arg-type]
        name, hint = f"{prefix}{field.name}", hints[field.name]
        if isinstance(hint, type) and is_dataclass(hint):
            arguments[field.name] = filled(hint, values, f"{name}.")
        elif name in values:
            arguments[field.name] = values[name]
    return cls(**arguments)


@cache
def _hints(cls: type) -> dict[str, Any]:
    """Return the types of fields, with the `Spec` of the nearest class that has one."""
    hints: dict[str, Any] = {}
    for base in cls.__mro__:
        for name, hint in get_type_hints(base, include_extras=True).items():
            is_told = name in hints and hasattr(hints[name], "__metadata__")
            if name not in hints or (hasattr(hint, "__metadata__") and not is_told):
                hints[name] = hint
    return hints


def _default(field: Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is MISSING else factory()


def arguments_of(kind: type) -> list[str]:
    """Return the names of the arguments of a dataclass."""
    return [field.name for field in fields(kind) if field.init]


def entries(what: str, value: Any, kind: type, *others: str) -> dict[str, Any]:
    """Return a copy of a dictionary that has all fields of a dataclass, and no others.

    Args:
        what: Word for the value in the message.
        value: The dictionary.
        kind: The dataclass.
        others: Names that the dictionary has in addition.

    Raises:
        ValueError: The value is something else, or has other entries.
    """
    names = [*others, *arguments_of(kind)]
    if not isinstance(value, dict) or value.keys() != set(names):
        raise ValueError(f"{what} must have {', '.join(names)}, got {limits.shown(value)}")
    return dict(value)


def _number(value: Any, name: str) -> float:
    with suppress(OverflowError):  # an int too large for a float
        if type(value) in (int, float):
            return float(value)
    raise TypeError(f"{name}: expected a number, got {_cut(repr(value))}")


def convert(value: Any, hint: Any, name: str, number: Callable[[Any, str], float] = _number) -> Any:
    """Convert a plain value to the type of a hint.

    Args:
        value: Number, text, list or dictionary of such.
        hint: A plain type, `Any`, enumeration, dataclass, union, `Literal`, tuple or dictionary by
            texts; with a `Spec`, only values that it allows.
        name: Name of the value for messages; may be empty for a dataclass.
        number: Converts floating-point numbers; receives value and name.

    Raises:
        TypeError: The value has another type.
        ValueError: A dictionary does not fit the dataclass, a value is out of range, or `number`
            refuses a number.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        converted = convert(value, arguments[0], name, number)
        return Declaration(name, arguments[0], None, arguments[1]).checked(converted)
    if origin in (Union, types.UnionType):
        for choice in arguments:
            with suppress(TypeError):
                return convert(value, choice, name, number)
    elif origin in (None, Literal) and not is_dataclass(hint):
        if (one := _scalar(value, hint, name, number)) is not _NONE:
            return one
    elif (several := _container(value, hint, name, number)) is not _NONE:
        return several
    near = limits.suggestion(str(value), arguments) if origin is Literal else ""
    got = f"{_cut(repr(value))}{'; ' if near else ''}{near}"
    raise TypeError(f"{name}: expected {_described(hint)}, got {got}")


def _scalar(value: Any, hint: Any, name: str, number: Callable[[Any, str], float]) -> Any:
    """Convert to a type without parts; return `_NONE` if the value has another type."""
    if hint is float:
        return number(value, name)
    if isinstance(hint, EnumType):
        return hint(value) if value in list(hint) else _NONE
    is_one = value in get_args(hint) or hint is Any or type(value) is hint
    return value if is_one else _NONE


def _container(value: Any, hint: Any, name: str, number: Callable[[Any, str], float]) -> Any:
    """Convert to a dataclass, dictionary or tuple; return `_NONE` if the value is none."""
    origin, hints = get_origin(hint), get_args(hint)
    if origin in (None, dict):
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return _NONE
        if origin is None:
            return _dataclass(value, hint, name, number)
        return {k: convert(v, hints[1], _inside(name, k), number) for k, v in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return _NONE
    if origin is not tuple or hints[-1] is ...:
        hints = hints[:1] * len(value)
    if len(value) != len(hints):
        return _NONE
    return tuple(convert(*pair, name, number) for pair in zip(value, hints))


def _described(hint: Any) -> str:
    """Return the values of a type in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _described(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_described(choice) for choice in arguments if choice is not _NOTHING)
    if origin is Literal or isinstance(hint, EnumType):
        arguments = arguments or tuple(hint)
        return f"one of {', '.join(map(str, arguments))}"
    if origin is tuple and arguments[-1] is not ...:
        parts = [(kind, len([*same])) for kind, same in groupby(map(_kind, arguments))]
        return f"a list of {' and '.join(_several(kind, n) for kind, n in parts)}"
    if origin is not None and origin is not dict:
        return f"a list of {_plural(_kind(arguments[0]))}"
    return "fields by name" if is_dataclass(hint) else _KINDS.get(origin or hint, str(hint))


def _kind(hint: Any) -> Any:
    """Return a type without its `Spec`."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _plural(kind: Any) -> str:
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_plural(_kind(choice)) for choice in get_args(kind))
    if get_origin(kind) is Literal:
        return f"any of {', '.join(map(str, get_args(kind)))}"
    return _PLURALS.get(kind, "entries with fields" if is_dataclass(kind) else "lists")


def _several(kind: Any, n: int) -> str:
    return _described(kind) if n == 1 else f"{n} {_plural(kind)}"


def _inside(name: str, key: Any) -> str:
    """Return the name of a value in a dictionary or dataclass."""
    return f"{name}.{limits.shown(key)}" if name else limits.shown(key)


def _dataclass(
    value: dict[Any, Any], kind: type, name: str, number: Callable[[Any, str], float]
) -> Any:
    hints, where = _hints(kind), f"{name}: " if name else ""
    known = {field.name: field for field in fields(kind) if field.init}
    for key in sorted(value.keys() - known.keys(), key=str):
        raise ValueError(f"{where}{limits.unknown('field', key, known)}")
    for key, field in known.items():
        is_needed = field.default is MISSING and field.default_factory is MISSING
        if is_needed and key not in value:
            raise ValueError(f"{where}{key!r} is missing in {limits.shown(value)}")
    try:
        arguments = {k: convert(v, hints[k], _inside(name, k), number) for k, v in value.items()}
    except TypeError as error:  # no other type of a union accepts a dictionary
        raise ValueError(str(error)) from None
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}{error}") from None
