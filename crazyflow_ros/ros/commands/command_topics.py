"""Command topics of the drones, from <drone>/cmd_pose to <drone>/wrench."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import Twist, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy

from crazyflow_ros.flight import Setpoint
from crazyflow_ros.ros.commands.setpoint_messages import VELOCITY, WRENCH, Command, commands
from crazyflow_ros.ros.commands.twists import TwistTopics

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

RecordCommand = Callable[[str, str, Any, Setpoint], None]
"""Takes the drone, the topic, a message and its setpoint, before the setpoint is posted."""

COMMAND_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Only the latest command matters."""


class CommandTopics:
    """Subscriptions that pass commands to the physics thread; invalid commands change nothing."""

    def __init__(self, simulator: Host, record: RecordCommand | None) -> None:
        self._simulator, self._physics, self._record = simulator, simulator.physics, record
        self._commands = commands(self._physics.control, simulator.parameters.drone_model)
        simulator.for_each_drone(self._add_drone)
        simulator.on_close(TwistTopics(simulator, self._twist).close)

    def _add_drone(self, drone: str) -> None:
        for command in self._commands.values():
            self._subscribe(drone, command.topic, command.type, partial(self._command, command))
        self._subscribe(drone, WRENCH.topic, WRENCH.type, self._push)

    def _subscribe(self, drone: str, topic: str, message_type: Any, apply: Any) -> None:
        """Subscribe to a topic of a drone; `apply` takes its name and a message."""
        receive = partial(apply, drone)
        self._simulator.create_subscription(message_type, f"{drone}/{topic}", receive, COMMAND_QOS)

    def _command(self, command: Command, drone: str, message: Any) -> None:
        setpoint = command.convert(message, drone)
        if self._record is not None:
            self._record(drone, command.topic, message, setpoint)
        self._physics.command(drone, setpoint)

    def _twist(self, drone: str, message: Twist) -> None:
        self._command(VELOCITY, drone, TwistStamped(twist=message))

    def _push(self, drone: str, message: WrenchStamped) -> None:
        wrench = WRENCH.convert(message, drone)
        self._physics.apply_wrench(drone, wrench, key=("topic", drone))
