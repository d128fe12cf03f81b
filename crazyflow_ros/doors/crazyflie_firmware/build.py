"""Starts the Crazyflie's firmware from a build for a computer, a process for each drone."""

from __future__ import annotations

import os
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.doors.autopilot import Autopilot
from crazyflow_ros.doors.processes import Processes
from crazyflow_ros.runtime.door_settings import AutopilotStart

NAME = "crazyflie_firmware"
FIRST_PORT = 19950
"""UDP port of the simulator for the first firmware."""
_ANY, _OWN = "0.0.0.0", "127.0.0.1"
_ADVICE = "build the folder sitl_make of CrazySim's firmware with CMake, and name its build folder"


def _who_connects(port: int, instance: int) -> str:
    del instance
    return f"its firmware, `cf2 {port} 127.0.0.1`, on UDP {port}"


FIRMWARE = Autopilot(
    name=NAME,
    title="Crazyflie firmware",
    first_port=FIRST_PORT,
    ports=1,
    freq=1000,
    connects=_who_connects,
    model="cf2x_L250",
    pace="in real time",
)


class FirmwareBuild:
    """A build of the firmware, and the processes that were started from it.

    Args:
        start: The simulation, whose `build` has `cf2`.
        address: Address of the simulator.

    Raises:
        ValueError: The folder has no build.
    """

    def __init__(self, start: AutopilotStart, address: str) -> None:
        folder = start.build
        self._program = folder.resolve() / "cf2"
        if not self._program.exists():
            there = f"there is no {shown_path(self._program)}"
            raise ValueError(f"--build: {shown_path(folder)} has no firmware: {there}; {_ADVICE}")
        if not os.access(self._program, os.X_OK):
            raise ValueError(f"--build: {shown_path(self._program)} cannot be run; {_ADVICE}")
        self._address = _OWN if address == _ANY else address
        self._processes = Processes(NAME, "Crazyflie firmware", start.work, start.logger)

    def start(self, instance: int) -> Path:
        """Start a process; see `AutopilotBuild`."""
        command: list[str | Path] = [self._program, str(FIRST_PORT + instance), self._address]
        return self._processes.start(instance, command)

    def close(self) -> None:
        """End all processes."""
        self._processes.close()
