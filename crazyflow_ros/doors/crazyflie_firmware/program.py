"""The program `crazyflie_firmware`: drones for that firmware without ROS, and it from a build."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.crazyflie_firmware.build import FIRST_PORT, FirmwareBuild
from crazyflow_ros.doors.crazyflie_firmware.door import NAME, CrazyflieFirmware
from crazyflow_ros.doors.program import Autopilot, run


def main(words: Sequence[str] | None = None, program: str = NAME) -> int:
    """Simulate drones that the Crazyflie's firmware flies, and start it, without ROS.

    It runs until a signal arrives, see `doors.program.run`.
    """
    return run(FIRMWARE, words, program)


def _who_connects(port: int, instance: int) -> str:
    del instance
    return f"its firmware, `cf2 {port} 127.0.0.1`, on UDP {port}"


FIRMWARE = Autopilot(
    name=NAME,
    title="Crazyflie firmware",
    settings=CrazyflieFirmware,
    first_port=FIRST_PORT,
    ports=1,
    freq=1000,
    build=FirmwareBuild,
    connects=_who_connects,
    model="cf2x_L250",
    pace="in real time",
)
