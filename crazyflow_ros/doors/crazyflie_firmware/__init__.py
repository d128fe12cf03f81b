"""The Crazyflie's own firmware flies the drones. docs/guides/autopilots.md explains it."""

from crazyflow_ros.doors.crazyflie_firmware.firmware_door import CrazyflieFirmware

__all__ = ["CrazyflieFirmware"]
