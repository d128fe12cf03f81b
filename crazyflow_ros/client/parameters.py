"""The parameters of a running simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParametersAtomically,
)
from rclpy.parameter import Parameter, parameter_value_to_python

from crazyflow_ros.checks.limits import shown, suggestion
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.client.connection import Connection, checked
from crazyflow_ros.client.errors import SimulationError

_KINDS = {
    ParameterType.PARAMETER_BOOL: "true or false",
    ParameterType.PARAMETER_INTEGER: "whole number",
    ParameterType.PARAMETER_DOUBLE: "number",
    ParameterType.PARAMETER_STRING: "text",
    ParameterType.PARAMETER_INTEGER_ARRAY: "list of whole numbers",
    ParameterType.PARAMETER_DOUBLE_ARRAY: "list of numbers",
    ParameterType.PARAMETER_STRING_ARRAY: "list of texts",
}
_LISTS = {
    ParameterType.PARAMETER_DOUBLE_ARRAY: Parameter.Type.DOUBLE_ARRAY,
    ParameterType.PARAMETER_STRING_ARRAY: Parameter.Type.STRING_ARRAY,
    ParameterType.PARAMETER_INTEGER_ARRAY: Parameter.Type.INTEGER_ARRAY,
}


@dataclass(frozen=True)
class ParameterDescription:
    """A parameter as the simulator describes it."""

    name: str
    kind: str
    """Type of its values, in words."""
    text: str
    """Its description."""
    constraint: str
    """Allowed values, or an empty string."""
    is_fixed: bool
    """Whether it can only be set at the start."""


class ParameterClient:
    """The parameters of a simulator."""

    def __init__(self, simulation: Connection) -> None:
        self._simulation = simulation

    def names(self) -> list[str]:
        """Return the names of all parameters."""
        return sorted(self._call(ListParameters, "list_parameters").result.names)

    def get(self, name: str) -> Any:
        """Return the value of a parameter.

        Raises:
            SimulationError: There is no parameter of this name.
        """
        self._check([name])
        return self._values([name])[name]

    def all(self) -> dict[str, Any]:
        """Return the values of all parameters by name."""
        return self._values(self.names())

    def set(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Set parameters, all or none.

        Args:
            values: Values by name, as they are in YAML. A parameter that is a text takes any value.

        Returns:
            The values that the parameters have then.

        Raises:
            SimulationError: A name or a value is refused; nothing has changed.
        """
        self._check(values)
        kinds = {one.name: one.type for one in self._descriptors(list(values))}
        messages = [
            _parameter(name, value, kinds[name]).to_parameter_msg()
            for name, value in values.items()
        ]
        self._call(SetParametersAtomically, "set_parameters_atomically", parameters=messages)
        return self._values(list(values))

    def describe(self, name: str) -> ParameterDescription:
        """Return the description of a parameter.

        Raises:
            SimulationError: There is no parameter of this name.
        """
        self._check([name])
        (found,) = self._descriptors([name])
        ranges = [*found.integer_range, *found.floating_point_range]
        spans = [f"from {one.from_value:g} to {one.to_value:g}" for one in ranges]
        return ParameterDescription(
            name=name,
            kind=_KINDS.get(found.type, "value"),
            text=found.description,
            constraint=", ".join(filter(None, [*spans, found.additional_constraints])),
            is_fixed=found.read_only,
        )

    def _check(self, names: Any) -> None:
        known = self.names()
        for name in names:
            if name not in known:
                hint = f"; {near}" if (near := suggestion(name, known)) else ""
                raise SimulationError(f"there is no parameter {shown(name)!r}{hint}")

    def _values(self, names: list[str]) -> dict[str, Any]:
        found = self._call(GetParameters, "get_parameters", names=names).values
        return {name: plain(parameter_value_to_python(v)) for name, v in zip(names, found)}

    def _descriptors(self, names: list[str]) -> list[Any]:
        return list(self._call(DescribeParameters, "describe_parameters", names=names).descriptors)

    def _call(self, kind: Any, service: str, **request: Any) -> Any:
        name = f"{self._simulation.name}/{service}"
        return checked(self._simulation.call(kind, name, **request))


def _parameter(name: str, value: Any, kind: int) -> Parameter[Any]:
    """Return a parameter with a value, of the declared type if the value allows it."""
    if kind == ParameterType.PARAMETER_STRING and isinstance(value, bool | int | float):
        return Parameter(name, value=str(value))
    if value == [] and kind in _LISTS:
        return Parameter(name, _LISTS[kind], [])
    numbers = isinstance(value, list) and all(type(one) in (int, float) for one in value)
    if numbers and kind == ParameterType.PARAMETER_DOUBLE_ARRAY:
        return Parameter(name, value=[float(one) for one in value])
    try:
        return Parameter(name, value=value)
    except (TypeError, ValueError):
        what = _KINDS.get(kind, "value")
        raise SimulationError(f"{name} is a {what}, not {shown(value)}") from None
