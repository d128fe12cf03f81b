"""ArduPilot flies the drones, in lock-step. docs/autopilots.md explains it."""

from crazyflow_ros.doors.ardupilot.door import ArduPilot
from crazyflow_ros.doors.gamepad import GamepadSettings

__all__ = ["ArduPilot", "GamepadSettings"]
