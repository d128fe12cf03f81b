"""The topic joy: a gamepad that flies a drone through an autopilot's radio receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sensor_msgs.msg import Joy

from crazyflow_ros.doors.gamepad import TakesGamepad

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

TOPIC = "joy"


def declare(simulator: Host, door: object) -> None:
    """Subscribe to the topic of joy_node, whose newest message moves the sticks of a door."""
    if isinstance(door, TakesGamepad):
        take = door.take_gamepad
        simulator.create_subscription(
            Joy, TOPIC, lambda message: take(message.axes, message.buttons), 1
        )
