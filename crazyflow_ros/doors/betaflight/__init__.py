"""Betaflight flies a drone. docs/autopilots.md explains it."""

from crazyflow_ros.doors.betaflight.door import Betaflight
from crazyflow_ros.doors.gamepad import GamepadSettings

__all__ = ["Betaflight", "GamepadSettings"]
