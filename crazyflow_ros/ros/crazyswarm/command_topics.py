"""Command topics as in crazyswarm2's server, with cmd_led and all/cmd_full_state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crazyflie_interfaces.msg import FullState
from geometry_msgs.msg import Twist
from std_msgs.msg import String

from crazyflow_ros.crazyflie.lights import RGB, colour
from crazyflow_ros.ros.commands import setpoint_messages
from crazyflow_ros.ros.commands.command_topics import (
    COMMAND_QOS,
    CommandTopics,
    Conversion,
    RecordedCommands,
)
from crazyflow_ros.ros.commands.flight_services import ALL

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.crazyflies import Crazyflies

_MOST_PWM = 60000.0
_LED: dict[str, Any] = {"topic": "cmd_led", "message_type": String}


class CrazyswarmTopics(CommandTopics):
    """Ignores the frames of crazyswarm2's messages, and limits the thrust of cmd_vel_legacy."""

    def __init__(self, crazyflies: Crazyflies, recorded: RecordedCommands | None) -> None:
        self._traffic, simulator = crazyflies.traffic, crazyflies.host
        super().__init__(simulator, recorded)
        self._firmware = crazyflies.firmware
        simulator.for_each_drone(partial(self._subscribe, **_LED, apply=self._light))
        simulator.create_subscription(
            FullState, f"{ALL}/cmd_full_state", self._command_all, COMMAND_QOS
        )

    def _command(self, conversion: Conversion, drone: str, message: Any) -> None:
        if type(message).__module__.startswith("crazyflie_interfaces."):
            message.header.frame_id = ""
        elif isinstance(message, Twist):
            message.linear.z = min(max(message.linear.z, 0.0), _MOST_PWM)
        self._traffic.count(drone)
        super()._command(conversion, drone, message)

    def _light(self, drone: str, message: String) -> None:
        """Give the lights of a drone's decks a colour."""
        self._traffic.count(drone)
        self._firmware(drone).parameters.set(RGB, colour(message.data))

    def _command_all(self, message: FullState) -> None:
        message.header.frame_id = ""
        self._traffic.count(ALL)
        for drone in self._physics.snapshot.names:
            super()._command(setpoint_messages.full_state, drone, message)


def declare(crazyflies: Crazyflies, recorded: RecordedCommands | None) -> None:
    """Create the subscriptions."""
    CrazyswarmTopics(crazyflies, recorded)
