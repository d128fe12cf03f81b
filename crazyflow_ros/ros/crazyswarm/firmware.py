"""Parameters of the firmware as parameters <drone>.params.<name> and all.params.<name>."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.parameter import Parameter

from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.drone import Crazyflie, Pilot
from crazyflow_ros.crazyflie.parameters import Number, table
from crazyflow_ros.ros.commands.flight_services import ALL
from crazyflow_ros.ros.crazyswarm.configuration import CONTROLLER
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.server import CrazyflieServer

_PARAMS = ".params."
_NUMBER = 0xE7  # of a Crazyflie whose address nobody has set


class FirmwareParameters:
    """The parameters of all Crazyflies.

    Each has its values; those of `all` are what was sent to all of them last.
    """

    def __init__(self, simulator: CrazyflieServer) -> None:
        self._simulator, self._logger = simulator, simulator.get_logger()
        self._entries = {entry.full_name: entry for entry in table()}
        self._uris = {robot.name: robot.uri for robot in simulator.swarm.robots}
        defaults = {entry.full_name: entry.default for entry in table()}
        self._declare(ALL, defaults)
        simulator.for_each_drone(self._add)
        simulator.add_on_set_parameters_callback(self._set)
        simulator.add_post_set_parameters_callback(self._pass_on)

    def _add(self, drone: str) -> None:
        """Switch a Crazyflie on, and set what the configuration has for it."""
        simulator = self._simulator
        firmware = simulator.firmware[drone] = Crazyflie(
            _number(self._uris.get(drone, "")),
            simulator.parameters.drone_model,
            simulator.parameters.crazyflie.decks,
            Controller(simulator.parameters.controller),
            Pilot(simulator.physics, drone, self._set_controller),
            partial(self._report, drone),
        )
        given = simulator.get_parameters_by_prefix(f"{drone}.params")
        values = {name: parameter.value for name, parameter in given.items()}
        for name, value in {**simulator.swarm.settings(drone).firmware_params, **values}.items():
            try:
                if name != CONTROLLER:  # the simulator has begun with it
                    firmware.parameters.set(name, value)
            except KeyError:
                self._report(drone, f"the firmware has no parameter {name}")
            except ValueError as error:
                self._report(drone, str(error))
        self._declare(drone, {name: firmware.parameters.get(name) for name in self._entries})

    def _declare(self, owner: str, values: dict[str, Number]) -> None:
        prefix, simulator = f"{owner}{_PARAMS}", self._simulator
        for name, entry in self._entries.items():
            if not simulator.has_parameter(prefix + name):  # else it was given, see above
                descriptor = ParameterDescriptor(
                    description=f"{entry.ctype} of the firmware", read_only=entry.read_only
                )
                simulator.declare_parameter(prefix + name, values[name], descriptor)

    def _report(self, drone: str, text: str) -> None:
        self._logger.warning(text if text.startswith(f"{drone}: ") else f"{drone}: {text}")

    def _set(self, changes: list[Parameter[Any]]) -> SetParametersResult:
        """Let the changes have their effect, or refuse them."""
        for change in changes:
            owner, is_one, name = change.name.partition(_PARAMS)
            if not is_one or name not in self._entries:
                continue
            try:
                value = self._entries[name].checked(change.value)
                firmware = self._simulator.firmware.get(owner)
                if firmware is not None and (name, value) != (
                    CONTROLLER,
                    firmware.parameters.get(name),
                ):
                    firmware.parameters.set(name, value)
            except (TypeError, ValueError) as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _pass_on(self, changes: list[Parameter[Any]]) -> None:
        """Set for each drone what was set for all, and the controller, which all share."""
        for change in changes:
            owner, _, name = change.name.partition(_PARAMS)
            if owner == ALL or name == CONTROLLER:
                names = [f"{drone}{_PARAMS}{name}" for drone in self._simulator.drones]
                self._simulator.set_parameters(
                    [
                        Parameter(name, value=change.value)
                        for name in names
                        if self._simulator.get_parameter(name).value != change.value
                    ]
                )

    def _set_controller(self, controller: Controller) -> None:
        def finish(future: Future[Snapshot]) -> None:
            if (error := future.exception()) is not None:
                self._logger.warning(f"the controller is unchanged: {error}")

        self._simulator.physics.set_controller(controller).add_done_callback(finish)
        for firmware in self._simulator.firmware.values():
            firmware.parameters.note(CONTROLLER, controller.number)


def _number(uri: str) -> int:
    """Return the number of a Crazyflie, the last byte of its address."""
    try:
        return int(uri[-2:], 16)
    except ValueError:
        return _NUMBER


def declare(simulator: CrazyflieServer) -> None:
    """Declare the parameters."""
    FirmwareParameters(simulator)
