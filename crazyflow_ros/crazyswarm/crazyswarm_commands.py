"""Command topics and flight services as in crazyswarm2's server.

Its additional topics are cmd_led and all/cmd_full_state; its additional service is reboot.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crazyflie_interfaces.msg import FullState
from crazyflie_interfaces.srv import GoTo
from geometry_msgs.msg import Twist
from std_msgs.msg import String
from std_srvs.srv import Empty

from crazyflow_ros.crazyflie.lights import RGB, colour
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.flight.firmware_setpoints import unplanned
from crazyflow_ros.ros.commands.command_topics import COMMAND_QOS, CommandTopics, RecordCommand
from crazyflow_ros.ros.commands.flight_services import ALL, FlightServices
from crazyflow_ros.ros.commands.setpoint_messages import Command, full_state

if TYPE_CHECKING:
    from crazyflow_ros.crazyswarm.crazyflies import Crazyflies

_MOST_PWM = 60000.0


class CrazyswarmTopics(CommandTopics):
    """Ignores the frames of crazyswarm2's messages, and limits the thrust of cmd_vel_legacy.

    Unless the server is gentle, setpoints reach the controllers unchanged, as in the firmware.
    """

    def __init__(self, crazyflies: Crazyflies, record: RecordCommand | None) -> None:
        self._traffic, self._firmware = crazyflies.traffic, crazyflies.firmware
        self._passes_on = crazyflies.host.physics.config.setpoint_modes
        super().__init__(crazyflies.host, record)
        crazyflies.host.create_subscription(
            FullState, f"{ALL}/cmd_full_state", self._command_all, COMMAND_QOS
        )

    def _add_drone(self, drone: str) -> None:
        super()._add_drone(drone)
        light = partial(self._light, drone)
        self._simulator.create_subscription(String, f"{drone}/cmd_led", light, COMMAND_QOS)

    def _command(self, command: Command, drone: str, message: Any) -> None:
        if type(message).__module__.startswith("crazyflie_interfaces."):
            message.header.frame_id = ""
        elif isinstance(message, Twist):
            message.linear.z = min(max(message.linear.z, 0.0), _MOST_PWM)
        self._traffic.count(drone)
        planned = command.convert(message, drone)
        if self._passes_on and (setpoint := unplanned(planned)) is not planned:
            self._physics.command(drone, setpoint)  # recorded as a setpoint, not as a message
        else:
            super()._command(command, drone, message)

    def _light(self, drone: str, message: String) -> None:
        """Give the lights of a drone's decks a colour."""
        self._traffic.count(drone)
        self._firmware(drone).parameters.set(RGB, colour(message.data))

    def _command_all(self, message: FullState) -> None:
        self._traffic.count(ALL)
        planned = full_state(message)
        setpoint = unplanned(planned) if self._passes_on else planned
        for drone in filter(self._simulator.owns, self._physics.snapshot.names):
            self._physics.command(drone, setpoint)


class CrazyswarmServices(FlightServices):
    """all/go_to is always relative: commands to all Crazyflies have no flag for it."""

    def __init__(self, crazyflies: Crazyflies) -> None:
        self._traffic = crazyflies.traffic
        super().__init__(crazyflies.host)

    def _add(self, owner: str) -> None:
        self._simulator.create_service(Empty, f"{owner}/reboot", partial(self._reboot, owner))
        super()._add(owner)

    async def _reboot(self, owner: str, _: Empty.Request, response: Empty.Response) -> Any:
        """Restart the firmware of a drone, or of all, where they are."""
        drones = [owner]
        if owner == ALL:
            drones = [*filter(self._simulator.owns, self._physics.snapshot.names)]
        for restarted in [self._physics.firmware.restart(drone) for drone in drones]:
            await self._waiting.result(restarted)
        return response

    async def _command(self, owner: str, request: Any) -> None:
        self._traffic.count(owner)
        await super()._command(owner, request)

    def _setpoint(self, drone: str, request: Any) -> Setpoint:
        setpoint = super()._setpoint(drone, request)
        return unplanned(setpoint) if self._physics.config.setpoint_modes else setpoint

    def _check_go_to_of_all(self, request: GoTo.Request) -> None:
        request.relative = True
