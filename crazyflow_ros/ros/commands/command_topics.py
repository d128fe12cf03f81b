"""Command topics of the drones, from <drone>/cmd_pose to <drone>/wrench."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import PointStamped, PoseStamped, Twist, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros.control import Control
from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.ros.commands import setpoint_messages
from crazyflow_ros.ros.commands.twists import TwistTopics
from crazyflow_ros.runtime import TimedWrench

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

Conversion = Callable[[Any, str], Setpoint]
RecordedCommands = Callable[[Conversion, str, Any], Conversion]
"""Takes a conversion, the topic and type of its messages; returns one that records them, too."""
Apply = Callable[[str, Any], None]
"""Applies a message to a drone; raises ValueError if the message is invalid."""

COMMAND_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
"""Only the latest command matters."""


def inputs(control: Control, drone_model: str) -> dict[str, tuple[Any, Conversion]]:
    """Return the type and the conversion of command messages, by topic.

    Args:
        control: Control mode of the topic `command`.
        drone_model: Model of the drones.
    """
    return {
        **_streamed(drone_model),
        "cmd_pose": (PoseStamped, setpoint_messages.pose),
        "cmd_vel": (TwistStamped, setpoint_messages.velocity),
        "goal_pose": (PoseStamped, setpoint_messages.goal_pose),
        "clicked_point": (PointStamped, setpoint_messages.clicked_point),
        "cmd_trajectory": (MultiDOFJointTrajectory, setpoint_messages.trajectory),
        "command": (Float64MultiArray, partial(setpoint_messages.raw, control=control)),
    }


def _streamed(drone_model: str) -> dict[str, tuple[Any, Conversion]]:
    """Return the streamed setpoints of crazyswarm2; all but one need its message package."""
    most_thrust = 4 * float(load_drone(drone_model)["thrust_max"])
    legacy = partial(setpoint_messages.legacy, most_thrust=most_thrust)
    found: dict[str, tuple[Any, Conversion]] = {"cmd_vel_legacy": (Twist, legacy)}
    with suppress(ModuleNotFoundError):  # the feature `flight_services` warns about it
        from crazyflie_interfaces.msg import FullState, Hover, Position, VelocityWorld

        found["cmd_full_state"] = (FullState, setpoint_messages.full_state)
        found["cmd_hover"] = (Hover, setpoint_messages.hover)
        found["cmd_position"] = (Position, setpoint_messages.position)
        found["cmd_velocity_world"] = (VelocityWorld, setpoint_messages.velocity_world)
    return found


class CommandTopics:
    """Subscriptions that pass commands to the physics thread; invalid commands change nothing."""

    def __init__(self, simulator: Host, recorded: RecordedCommands | None) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        self._recorded = recorded
        self._inputs = inputs(self._physics.control, simulator.parameters.drone_model)
        self._velocity: dict[str, Callable[[Any], None]] = {}
        simulator.for_each_drone(self._add_drone)
        simulator.on_close(TwistTopics(simulator, self._twist).close)

    def _add_drone(self, drone: str) -> None:
        for topic, (message_type, conversion) in self._inputs.items():
            if self._recorded is not None:
                name = f"{drone}/{topic}"
                conversion = self._recorded(conversion, name, message_type)
            apply = partial(self._command, conversion)
            if message_type is TwistStamped:
                self._velocity[drone] = partial(apply, drone)
            self._subscribe(drone, topic, message_type, apply)
        self._subscribe(drone, "wrench", WrenchStamped, self._push)

    def _subscribe(self, drone: str, topic: str, message_type: Any, apply: Apply) -> None:
        receive = partial(apply, drone)
        self._simulator.create_subscription(message_type, f"{drone}/{topic}", receive, COMMAND_QOS)

    def _twist(self, drone: str, message: Twist) -> None:
        self._velocity[drone](TwistStamped(twist=message))

    def _command(self, conversion: Conversion, drone: str, message: Any) -> None:
        self._physics.command(drone, conversion(message, drone))

    def _push(self, drone: str, message: WrenchStamped) -> None:
        wrench: TimedWrench = setpoint_messages.wrench(message, drone)
        self._physics.apply_wrench(drone, wrench, key=("topic", drone))


def declare(simulator: Host, recorded: RecordedCommands | None) -> None:
    """Create the subscriptions."""
    CommandTopics(simulator, recorded)
