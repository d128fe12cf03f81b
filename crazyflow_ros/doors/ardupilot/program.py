"""The program `ardupilot`: drones for ArduPilot without ROS, and ArduPilot itself from a build."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.ardupilot.ardupilot_build import ARDUPILOT
from crazyflow_ros.doors.ardupilot.ardupilot_door import ArduPilot
from crazyflow_ros.doors.autopilot_program import run


def main(words: Sequence[str] | None = None, program: str = "ardupilot") -> int:
    """Simulate drones that ArduPilot flies, and start ArduPilot, without ROS.

    It runs until a signal arrives, see `autopilot_program.run`.
    """
    return run(ArduPilot, ARDUPILOT, words, program)
