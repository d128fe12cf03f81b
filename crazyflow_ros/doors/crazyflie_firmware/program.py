"""The program `crazyflie_firmware`: drones for the Crazyflie's firmware without ROS, and the
firmware itself where there is a build of it."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.crazyflie_firmware.build import FIRST_PORT, FirmwareBuild
from crazyflow_ros.doors.crazyflie_firmware.door import NAME, CrazyflieFirmware
from crazyflow_ros.doors.program import Autopilot, run


def main(words: Sequence[str] | None = None, program: str = NAME) -> int:
    """Run the program until a signal arrives; see `doors.program.run`."""
    return run(_FIRMWARE, words, program)
