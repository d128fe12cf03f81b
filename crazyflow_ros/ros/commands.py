"""What is done to drones: <drone>/cmd_pose, cmd_vel, cmd_trajectory, command and wrench."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros.control import Control
from crazyflow_ros.ros import setpoints
from crazyflow_ros.runtime import Setpoint, Wrench

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

Conversion = Callable[[Any, str], Setpoint]
Apply = Callable[[str, Any], None]
"""Passes a message for a drone on; raises ValueError if it is a bad one."""

# The latest command counts, so none is kept for later.
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_WARNING_PERIOD = 1.0  # s of wall time between two warnings about the same topic


def inputs(control: Control) -> dict[str, tuple[Any, Conversion]]:
    """Type and conversion of the messages that tell a drone what to do, by topic."""
    return {
        "cmd_pose": (PoseStamped, setpoints.pose),
        "cmd_vel": (TwistStamped, setpoints.velocity),
        "cmd_trajectory": (MultiDOFJointTrajectory, setpoints.trajectory),
        "command": (Float64MultiArray, partial(setpoints.raw, control=control)),
    }


class Commands:
    """Passes commands on to the physics thread; a bad one changes nothing."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        self._logger = simulator.get_logger()
        self._warned: dict[str, float] = {}
        simulator.for_each_drone(self._add_drone)

    def _add_drone(self, drone: str) -> None:
        effects = self._simulator.recorded_effects
        for topic, (message_type, conversion) in inputs(self._physics.control).items():
            if effects is not None:
                name = f"{drone}/{topic}"
                conversion = effects.with_messages(conversion, name, message_type)
            self._subscribe(drone, topic, message_type, partial(self._command, conversion))
        self._subscribe(drone, "wrench", WrenchStamped, self._push)

    def _subscribe(self, drone: str, topic: str, message_type: Any, apply: Apply) -> None:
        name = f"{drone}/{topic}"
        receive = partial(self._receive, drone, name, apply)
        self._simulator.create_subscription(message_type, name, receive, _QOS)

    def _command(self, conversion: Conversion, drone: str, message: Any) -> None:
        self._physics.command(drone, conversion(message, drone))

    def _push(self, drone: str, message: WrenchStamped) -> None:
        wrench: Wrench = setpoints.wrench(message, drone)
        self._physics.apply_wrench(drone, wrench, key=("topic", drone))

    def _receive(self, drone: str, topic: str, apply: Apply, message: Any) -> None:
        try:
            apply(drone, message)
        except ValueError as error:
            self._warn(topic, f"{topic} is ignored: {error}")

    def _warn(self, topic: str, text: str) -> None:
        now = time.monotonic()
        if now - self._warned.get(topic, -_WARNING_PERIOD) >= _WARNING_PERIOD:
            self._warned[topic] = now
            self._logger.warning(text)


def declare(simulator: Simulator) -> None:
    """Add the subscriptions."""
    Commands(simulator)
