"""PX4 flies the drones, in lock-step. docs/guides/autopilots.md explains it."""

from crazyflow_ros.doors.px4.px4_door import Px4

__all__ = ["Px4"]
