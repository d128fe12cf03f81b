"""Declaration of a dataclass's fields as ROS parameters, see `plain_values`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter

from crazyflow_ros.checks.limits import shown, suggestion
from crazyflow_ros.checks.plain_values import (
    Declaration,
    Names,
    Numbers,
    declarations,
    filled,
    plain,
)

T = TypeVar("T")

_OF_EVERY_NODE = {"use_sim_time", "start_type_description_service"}
_LISTS = {Names: Parameter.Type.STRING_ARRAY, Numbers: Parameter.Type.DOUBLE_ARRAY}


class ParameterNode(Node):
    """A node whose parameters `declare` reads.

    A list without elements, such as `-p crazyflie.decks:=[]`, arrives from rcl without type and
    value; rclpy would not start with it. Where floating-point numbers are expected, whole numbers
    are accepted, at the start and later.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self.declared: dict[str, Declaration] = {}
        super().__init__(name, automatically_declare_parameters_from_overrides=True, **options)

    def declare_parameters(
        self, namespace: str, parameters: Sequence[Any], ignore_override: bool = False
    ) -> list[Parameter[Any]]:
        """Declare parameters as rclpy does, and also those that have no value."""
        for _, value, descriptor in (given for given in parameters if len(given) == 3):
            descriptor.dynamic_typing |= value is None
        return super().declare_parameters(namespace, parameters, ignore_override)

    def get_parameter(self, name: str) -> Parameter[Any]:
        """Return a parameter, also an empty list, which `declare` gives no value.

        Without that, rclpy's service answers nothing if one of many parameters is empty.
        """
        try:
            return super().get_parameter(name)
        except ParameterUninitializedException:
            if name not in self.declared:
                raise
            return Parameter(name, _LISTS[self.declared[name].kind], [])

    def set_parameters_atomically(
        self, parameter_list: list[Parameter[Any]]
    ) -> SetParametersResult:
        """Set parameters as rclpy does, in the declared types; a refusal says what is expected."""
        try:
            fitting = [self._fitting(parameter) for parameter in parameter_list]
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return super().set_parameters_atomically(fitting)

    def _fitting(self, parameter: Parameter[Any]) -> Parameter[Any]:
        """Return a change in the declared type.

        Raises:
            ValueError: The parameter cannot be changed, or not to this value.
        """
        name, value = parameter.name, parameter.value
        if not self.has_parameter(name):
            raise ValueError(_unknown(name, self.declared))
        kind, declaration = self.get_parameter(name).type_, self.declared.get(name)
        if declaration is not None:
            if declaration.spec.read_only:
                raise ValueError(f"{name} can only be set at the start, got {shown(value)} later")
            return Parameter(name, kind, plain(declaration.checked(value)))
        if (parameter.type_, kind) == (Parameter.Type.INTEGER, Parameter.Type.DOUBLE):
            return Parameter(name, kind, float(value))
        return parameter


def declare(
    node: ParameterNode,
    cls: type[T],
    defaults: Mapping[str, Any] | None = None,
    others: tuple[str, ...] = (),
    prefix: str = "",
) -> T:
    """Declare the parameters of a dataclass on a node, and read them.

    Args:
        node: Node that has declared all given parameters, so that wrong types can be distinguished
            from unknown names, and whole numbers are accepted as floating-point numbers.
        cls: The dataclass.
        defaults: Defaults by name that replace those of the dataclass.
        others: Prefixes of the names of other parameters that the node knows.
        prefix: Prefix of the names of all these parameters. Parameters that are already declared
            are shared, and their values are read.

    Raises:
        ParameterError: A value is not allowed.
    """
    given = node.get_parameters_by_prefix("")
    known = {declaration.name for declaration in declarations(cls, prefix)}
    for name in sorted(given.keys() - known - _OF_EVERY_NODE):
        if name.startswith(prefix) and not name.startswith(("qos_overrides.", *others)):
            node.get_logger().warning(_unknown(name, known, ", it is ignored"))
    values: dict[str, Any] = {}
    for declaration in declarations(cls, prefix):
        name, value = declaration.name, declaration.default
        if name in node.declared:
            values[name] = declaration.checked(node.get_parameter(name).value)
            continue
        if defaults is not None and name in defaults:
            value = declaration.checked(defaults[name])
        if name in given:
            value = given[name].value
            is_empty_list = value is None and declaration.kind in _LISTS
            value = declaration.checked([] if is_empty_list else value)
            node.undeclare_parameter(name)
        declared = plain(value)
        if declared == []:  # declared without a value: rclpy takes an empty list for one of bytes
            declared = _LISTS[declaration.kind]
        node.declare_parameter(name, declared, _descriptor(declaration), ignore_override=True)
        node.declared[name], values[name] = declaration, value
    return filled(cls, values, prefix)


def _unknown(name: str, known: Iterable[str], result: str = "") -> str:
    hint = f"; {near}" if (near := suggestion(name, known)) else ""
    return f"there is no parameter {shown(name)!r}{result}{hint}"


def _descriptor(declaration: Declaration) -> ParameterDescriptor:
    spec = declaration.spec
    descriptor = ParameterDescriptor(description=spec.description, read_only=spec.read_only)
    if spec.choices:
        other = ", or as the description says" if spec.otherwise else ""
        descriptor.additional_constraints = f"{declaration.expected}{other}"
    if spec.minimum is not None and spec.maximum is not None:
        low, high = declaration.kind(spec.minimum), declaration.kind(spec.maximum)
        if declaration.kind is int:
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high)]
        else:
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return descriptor
