"""Betaflight flies a drone. docs/guides/autopilots.md explains it."""

from crazyflow_ros.doors.betaflight.betaflight_door import Betaflight

__all__ = ["Betaflight"]
