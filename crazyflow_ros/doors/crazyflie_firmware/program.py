"""The program `crazyflie_firmware`: drones for that firmware without ROS, and it from a build."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.autopilot_program import run
from crazyflow_ros.doors.crazyflie_firmware.firmware_build import FIRMWARE, NAME
from crazyflow_ros.doors.crazyflie_firmware.firmware_door import CrazyflieFirmware


def main(words: Sequence[str] | None = None, program: str = NAME) -> int:
    """Simulate drones that the Crazyflie's firmware flies, and start it, without ROS.

    It runs until a signal arrives, see `autopilot_program.run`.
    """
    return run(CrazyflieFirmware, FIRMWARE, words, program)
