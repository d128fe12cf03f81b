"""Doors, through which programs outside this process fly the drones. No ROS.

A package adds one with an entry point of the group `crazyflow_ros.doors`, which names a dataclass
of settings, see `DoorSettings`.
"""

from crazyflow_ros.doors.gamepad import GamepadSettings
from crazyflow_ros.doors.samples import Samples
from crazyflow_ros.runtime.door_commands import Commands
from crazyflow_ros.runtime.door_patience import Patience
from crazyflow_ros.runtime.door_settings import (
    Autopilots,
    AutopilotStart,
    DoorContext,
    DoorSettings,
    StartsAutopilots,
    door_settings,
)

__all__ = [
    "AutopilotStart",
    "Autopilots",
    "Commands",
    "DoorContext",
    "DoorSettings",
    "GamepadSettings",
    "Patience",
    "Samples",
    "StartsAutopilots",
    "door_settings",
]
