"""ArduPilot flies the drones, in lock-step. docs/guides/autopilots.md explains it."""

from crazyflow_ros.doors.ardupilot.ardupilot_door import ArduPilot

__all__ = ["ArduPilot"]
