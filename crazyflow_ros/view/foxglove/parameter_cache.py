"""Parameters of the simulator for Foxglove, with names such as `/crazyflow.real_time_factor`."""

from __future__ import annotations

import threading
from typing import Any

import foxglove
from rcl_interfaces.msg import ParameterEvent
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.parameter import Parameter, parameter_value_to_python

from crazyflow_ros.checks import limits
from crazyflow_ros.view.foxglove.bridge import Bridge
from crazyflow_ros.view.foxglove.services import Services


class ParameterCache:
    """A cache of the parameters, so that frequent requests of clients do not load the simulator."""

    def __init__(self, bridge: Bridge, services: Services, simulator: str) -> None:
        self._bridge, self._node = bridge, bridge.node
        self._services, self._simulator = services, simulator
        self._list: Any = self._node.create_client(ListParameters, f"{simulator}/list_parameters")
        self._node.create_subscription(ParameterEvent, "/parameter_events", self._note, 100)
        self._values: dict[str, Any] = {}
        self._is_known = False

    def update(self) -> None:
        """Request all parameters, unless they are known. Runs in the executor's thread."""
        if not self._list.service_is_ready():
            self.forget()
        elif not self._is_known:
            self._is_known = True
            threading.Thread(target=self._load, name="parameters", daemon=True).start()

    def forget(self) -> None:
        """Request all parameters again at the next update, perhaps of another simulator."""
        self._is_known = False

    def _load(self) -> None:
        try:
            names = self._call("list", ListParameters, ListParameters.Request()).result.names
            self._values = self._read(names)
        except TimeoutError:  # it is just starting or ending
            return self.forget()
        return self._bridge.server.publish_parameter_values(self.shown([]))

    def _read(self, names: list[str]) -> dict[str, Any]:
        """Read values; rclpy returns none at all if one of the parameters has no value."""
        values = self._call("get", GetParameters, GetParameters.Request(names=names)).values
        if len(values) == len(names):
            return dict(zip(names, map(parameter_value_to_python, values)))
        if len(names) < 2:
            return {}
        half = len(names) // 2
        return self._read(names[:half]) | self._read(names[half:])

    def _call(self, what: str, kind: Any, request: Any) -> Any:
        name = f"{self._simulator}/{what}_parameters"
        return self._services.call(name, kind, request)

    def _note(self, event: ParameterEvent) -> None:
        if event.node != self._simulator:
            return
        changed = [*event.new_parameters, *event.changed_parameters]
        self._values |= {p.name: parameter_value_to_python(p.value) for p in changed}
        names = [self._full(parameter.name) for parameter in changed]
        self._bridge.server.publish_parameter_values(self.shown(names))

    def value(self, name: str) -> Any:
        """Return the value of a parameter, or None if it is not known."""
        return self._values.get(name)

    def shown(self, names: list[str]) -> list[foxglove.Parameter]:
        """Return parameters with their values.

        Args:
            names: Full names; empty for all.
        """
        values = {self._full(name): value for name, value in self._values.items()}
        asked = [name for name in names if name in values] if names else list(values)
        return [foxglove.Parameter(name, value=values[name]) for name in asked]

    def set(self, given: list[foxglove.Parameter]) -> list[foxglove.Parameter]:
        """Set parameters from a thread of the server, and return their new values."""
        for parameter in given:
            name = parameter.name
            try:
                own = name.removeprefix(f"{self._simulator}.")
                if own == name:
                    raise ValueError(f"it is not a parameter of {self._simulator}")
                self.set_one(own, parameter.get_value())
            except (ValueError, TimeoutError) as error:
                self._bridge.complain(f"{name} is not set: {error}")
        return self.shown([parameter.name for parameter in given])

    def set_one(self, name: str, value: Any) -> None:
        """Set a parameter from any thread but the executor's.

        Raises:
            ValueError: The simulator refuses the value; the message has its reason.
            TimeoutError: The simulator does not respond.
        """
        message = _message(name, value, self._values.get(name))
        request = SetParameters.Request(parameters=[message])
        for result in self._call("set", SetParameters, request).results:
            if not result.successful:
                raise ValueError(result.reason)
        self._values[name] = parameter_value_to_python(message.value)

    def _full(self, name: str) -> str:
        return f"{self._simulator}.{name}"


def _message(name: str, value: Any, known: Any) -> Any:
    """Return the message of a parameter; an integer becomes a double if the parameter is a double.

    Raises:
        ValueError: ROS has no parameters of this type.
    """
    try:
        if isinstance(known, float) and type(value) is int:
            value = float(value)
        elif isinstance(known, list) and known and isinstance(known[0], float):
            value = [float(number) for number in value]
        return Parameter(name, value=value).to_parameter_msg()
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the value {limits.shown(value)} cannot be sent: {error}") from None
