"""Parameters from a dataclass: declared with description and range, and checked.

A field is `name: Annotated[type, Spec(...)] = default`. A field that is a dataclass itself gives
parameters with its name and a dot in front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.parameter import Parameter

from crazyflow_ros import limits

if TYPE_CHECKING:
    from rclpy.node import Node

T = TypeVar("T")

Names = tuple[str, ...]
Numbers = tuple[float, ...]

_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Names: "a list of names such as [cf0, cf1]",
    Numbers: "a list of numbers",
}
_SHOWN = 600  # characters of what was expected, and of a refused value
_OF_EVERY_NODE = {"use_sim_time", "start_type_description_service"}


class ParameterError(ValueError):
    """A parameter has a value that cannot be used; the message names both, and what can."""

    def __init__(self, name: str, expected: str, value: Any) -> None:
        super().__init__(f"{name}: expected {_cut(expected)}, got {_cut(repr(value))}")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


@dataclass(frozen=True)
class Spec:
    """What a parameter is, and which values it may have."""

    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()
    otherwise: Callable[[str], str] | None = None
    """Makes a value of one that is none of the choices, or raises ValueError."""
    read_only: bool = True
    """Can be set at the start only."""
    check: Callable[[Any], object] | None = None
    """Raises ValueError for values that the range allows and that cannot be used all the same."""


class Declaration(NamedTuple):
    """One parameter."""

    name: str
    kind: Any
    """bool, int, float, str, Names or Numbers."""
    default: Any
    spec: Spec

    @property
    def expected(self) -> str:
        """What values are allowed, in words."""
        if self.spec.choices:
            return f"one of {', '.join(self.spec.choices)}"
        if self.spec.minimum is None:
            return _KINDS[self.kind]
        return f"{_KINDS[self.kind]} from {self.spec.minimum:.10g} to {self.spec.maximum:.10g}"

    def checked(self, value: Any) -> Any:
        """The value in the declared type.

        Raises:
            ParameterError: It is not allowed.
        """
        try:
            converted = self._converted(value)
        except OverflowError:  # of an int that no float holds
            raise ParameterError(self.name, self.expected, value) from None
        low, high = self.spec.minimum, self.spec.maximum
        inside = low is None or high is None or low <= converted <= high
        is_other = bool(self.spec.choices) and converted not in self.spec.choices
        if is_other and self.spec.otherwise is not None:
            return self.spec.otherwise(converted)
        if not inside or is_other:
            raise ParameterError(self.name, self.expected, value)
        if self.spec.check is not None:
            self.spec.check(converted)
        return converted

    def descriptor(self) -> ParameterDescriptor:
        """The descriptor that tools show."""
        spec = self.spec
        descriptor = ParameterDescriptor(description=spec.description, read_only=spec.read_only)
        if spec.choices:
            other = ", or as the description says" if spec.otherwise else ""
            descriptor.additional_constraints = f"{self.expected}{other}"
        if spec.minimum is not None and spec.maximum is not None:
            low, high = self.kind(spec.minimum), self.kind(spec.maximum)
            if self.kind is int:
                descriptor.integer_range = [IntegerRange(from_value=low, to_value=high)]
            else:
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=low, to_value=high)
                ]
        return descriptor

    def _converted(self, value: Any) -> Any:
        element = {Names: (str,), Numbers: (int, float)}.get(self.kind)
        if element is not None:
            is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
            if is_list and all(type(item) in element for item in value):
                return tuple(element[-1](item) for item in value)
        elif type(value) is self.kind:
            return limits.text(self.name, value) if self.kind is str else value
        elif self.kind is float and type(value) is int:
            return float(value)
        raise ParameterError(self.name, self.expected, value)


def values_of(parameters: Any, prefix: str = "") -> dict[str, Any]:
    """All parameters of an instance of a dataclass by name; `from_values` is the way back."""
    values: dict[str, Any] = {}
    for field in fields(parameters):
        value = getattr(parameters, field.name)
        if is_dataclass(value):
            values |= values_of(value, f"{prefix}{field.name}.")
        else:
            values[f"{prefix}{field.name}"] = value
    return values


def declarations(cls: type, prefix: str = "") -> Iterator[Declaration]:
    """All parameters of a dataclass."""
    hints, defaults = get_type_hints(cls, include_extras=True), cls()
    for field in fields(cls):
        default, hint = getattr(defaults, field.name), hints[field.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from declarations(hint, f"{prefix}{field.name}.")
        else:
            (spec,) = hint.__metadata__
            yield Declaration(f"{prefix}{field.name}", hint.__origin__, default, spec)


def declare(node: Node, cls: type[T]) -> T:
    """Declare the parameters of a dataclass on a node, and read them.

    Args:
        node: Made with `automatically_declare_parameters_from_overrides`, so that wrong types and
            unknown names can be told from each other, and a whole number does for a number.
        cls: The dataclass.

    Returns:
        The values.

    Raises:
        ParameterError: A value is not allowed.
    """
    given = node.get_parameters_by_prefix("")
    known = {declaration.name for declaration in declarations(cls)}
    for name in sorted(given.keys() - known - _OF_EVERY_NODE):
        if not name.startswith("qos_overrides."):
            node.get_logger().warning(f"there is no parameter {name!r}, it is ignored")
    values: dict[str, Any] = {}
    for declaration in declarations(cls):
        name, value = declaration.name, declaration.default
        if name in given:
            value = declaration.checked(given[name].value)
            node.undeclare_parameter(name)
        declared: Any = list(value) if isinstance(value, tuple) else value
        if declared == []:  # without a value, for an empty list would be taken for one of bytes
            declared = Parameter.Type.DOUBLE_ARRAY
        node.declare_parameter(name, declared, declaration.descriptor(), ignore_override=True)
        values[name] = value
    return _filled(cls, values)


def from_values(cls: type[T], values: Mapping[str, Any]) -> T:
    """An instance of a dataclass from its parameters by name.

    Raises:
        ParameterError: A value is not allowed, or missing.
    """
    known = {d.name: d for d in declarations(cls)}
    for name in known.keys() ^ values.keys():
        raise ParameterError(name, "another version of this package", values.get(name))
    return _filled(cls, {name: d.checked(values[name]) for name, d in known.items()})


def _filled(cls: type[T], values: dict[str, Any], prefix: str = "") -> T:
    hints = get_type_hints(cls)
    arguments = {
        field.name: _filled(hints[field.name], values, f"{prefix}{field.name}.")
        if is_dataclass(hints[field.name])
        else values[f"{prefix}{field.name}"]
        for field in fields(cls)  # type: ignore[arg-type]
    }
    return cls(**arguments)
