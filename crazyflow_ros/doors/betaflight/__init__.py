"""Betaflight flies a drone. docs/autopilots.md explains it."""

from crazyflow_ros.doors.betaflight.betaflight_door import Betaflight

__all__ = ["Betaflight"]
