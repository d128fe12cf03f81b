"""Starts the Crazyflie's firmware from a build for a computer, a process for each drone."""

from __future__ import annotations

from pathlib import Path

from crazyflow_ros.doors.autopilot import Autopilot, AutopilotBuild, connectable
from crazyflow_ros.runtime.door_settings import AutopilotStart

NAME = "crazyflie_firmware"
FIRST_PORT = 19950
"""UDP port of the simulator for the first firmware."""

FIRMWARE = Autopilot(
    name=NAME,
    title="Crazyflie firmware",
    first_port=FIRST_PORT,
    ports=1,
    freq=1000,
    program="cf2",
    advice="build the folder sitl_make of CrazySim's firmware with CMake, and name its build "
    "folder",
    connects=lambda port, _: f"its firmware, `cf2 {port} 127.0.0.1`, on UDP {port}",
    model="cf2x_L250",
    pace="in real time",
)


class FirmwareBuild(AutopilotBuild):
    """A build of the firmware, which has `cf2`.

    Args:
        port: Port of the first drone.
        start: The simulation.
        address: Address of the simulator.

    Raises:
        ValueError: The folder has no build, or no instance has the port.
    """

    def __init__(self, port: int, start: AutopilotStart, address: str) -> None:
        super().__init__(FIRMWARE, port, start)
        self._address = connectable(address)

    def _command(self, instance: int, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
        del folder
        return [self._program, str(FIRST_PORT + instance), self._address], {}
