"""Parameters of the firmware as parameters <drone>.params.<name> and all.params.<name>."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.parameter import Parameter

from crazyflow_ros.crazyflie.parameters import CrazyflieParameters, Number, table
from crazyflow_ros.crazyswarm.swarm_configuration import CONTROLLER
from crazyflow_ros.ros.commands.flight_services import ALL
from crazyflow_ros.runtime import ResetEvent, ResetScope

if TYPE_CHECKING:
    from crazyflow_ros.crazyswarm.crazyflies import Crazyflies

_PARAMS = ".params."


class FirmwareParameters:
    """The parameters of all Crazyflies.

    Each Crazyflie has its own values; those of `all` are the values last sent to all Crazyflies.
    Values that cflib sets over CRTP appear within a tenth of a second.
    """

    def __init__(self, crazyflies: Crazyflies) -> None:
        self._simulator = simulator = crazyflies.host
        self._node, self._crazyflies = simulator.node, crazyflies
        self._entries = {entry.full_name: entry for entry in table()}
        self._lock = threading.Lock()  # guards the next line
        self._changed: set[tuple[str, str]] = set()
        self._given: dict[str, dict[str, Any]] = {}  # by drone
        self._configured: WeakSet[CrazyflieParameters] = WeakSet()
        self._following = False  # true while the node copies the firmware's values
        defaults = {entry.full_name: entry.default for entry in table()}
        self._declare(ALL, defaults)
        simulator.for_each_drone(self._add)
        simulator.physics.news.on_reset(self._configure_again)
        self._node.add_on_set_parameters_callback(self._set)
        self._node.add_post_set_parameters_callback(self._pass_on)
        crazyflies.fleet.on_change.append(self._note)
        simulator.regular_calls.add(self._follow)

    def _add(self, drone: str) -> None:
        """Configure a new Crazyflie and declare its parameters."""
        parameters = self._crazyflies.firmware(drone).parameters
        if drone not in self._given:  # else the node shows what was set since
            self._given[drone] = self._read(drone)
        if parameters not in self._configured:
            self._configured.add(parameters)
            self._configure(drone)
        self._declare(drone, {name: parameters.get(name) for name in self._entries})

    def _read(self, drone: str) -> dict[str, Any]:
        """Return the values that the configuration and the node's parameters give a Crazyflie."""
        crazyflies = self._crazyflies
        own = self._node.get_parameters_by_prefix(f"{drone}.params")
        values = {name: parameter.value for name, parameter in own.items()}
        given = {**crazyflies.swarm.settings(drone).firmware_params, **values}
        for name in given.keys() - self._entries.keys():
            crazyflies.fleet.report(drone, f"the firmware has no parameter {name}")
        # The simulator has started with the controller.
        return {
            name: value
            for name, value in given.items()
            if name in self._entries and name != CONTROLLER
        }

    def _configure(self, drone: str) -> None:
        """Set the parameters of a Crazyflie that the configuration has."""
        parameters = self._crazyflies.firmware(drone).parameters
        for name, value in self._given[drone].items():
            try:
                parameters.set(name, value)
            except ValueError as error:
                self._crazyflies.fleet.report(drone, str(error))

    def _configure_again(self, event: ResetEvent) -> None:
        """Configure Crazyflies whose firmware has restarted. Physics thread."""
        if ResetScope.state in event.scope:
            for drone in event.drones:
                if drone in self._given:
                    self._configure(drone)

    def _declare(self, owner: str, values: dict[str, Number]) -> None:
        prefix, node = f"{owner}{_PARAMS}", self._node
        for name, entry in self._entries.items():
            if node.has_parameter(prefix + name):  # given, or left from the one before
                self._note(owner, name, False)
            else:
                descriptor = ParameterDescriptor(
                    description=f"{entry.ctype} of the firmware", read_only=entry.read_only
                )
                node.declare_parameter(prefix + name, values[name], descriptor)

    def _set(self, changes: list[Parameter[Any]]) -> SetParametersResult:
        """Apply the changes, or refuse them."""
        for change in changes:
            owner, is_one, name = change.name.partition(_PARAMS)
            if self._following or not is_one or name not in self._entries:
                continue
            try:
                value = self._entries[name].checked(change.value)
                if owner not in self._simulator.drones:
                    continue
                parameters = self._crazyflies.firmware(owner).parameters
                if name != CONTROLLER or value != parameters.get(name):
                    parameters.set(name, value)
            except ValueError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _pass_on(self, changes: list[Parameter[Any]]) -> None:
        """Set parameters of `all` on each drone."""
        for change in changes:
            owner, _, name = change.name.partition(_PARAMS)
            if owner == ALL:
                drones = filter(self._simulator.owns, self._simulator.drones)
                names = [f"{drone}{_PARAMS}{name}" for drone in drones]
                self._node.set_parameters(
                    [
                        Parameter(name, value=change.value)
                        for name in names
                        if self._node.get_parameter(name).value != change.value
                    ]
                )

    def _note(self, drone: str, name: str, _: bool) -> None:
        """Note that a parameter of the firmware has changed."""
        with self._lock:
            self._changed.add((drone, name))

    def _follow(self) -> None:
        """Set the node's parameters to the present values of the firmware."""
        with self._lock:
            changed, self._changed = self._changed, set()
        node, news = self._node, []
        for drone, name in changed:
            full_name = f"{drone}{_PARAMS}{name}"
            with suppress(ValueError):  # the drone was removed
                value = self._crazyflies.firmware(drone).parameters.get(name)
                if node.has_parameter(full_name):
                    shown = node.get_parameter(full_name).value
                    if self._entries[name].checked(shown) != value:  # beyond rounding
                        news.append(Parameter(full_name, value=value))
        self._following = True
        try:
            node.set_parameters(news)
        finally:
            self._following = False
