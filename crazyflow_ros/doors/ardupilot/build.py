"""Starts ArduPilot from a build, a process for each drone."""

from __future__ import annotations

import os
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.doors.ardupilot.parameters import parameters
from crazyflow_ros.doors.processes import Processes
from crazyflow_ros.doors.program import AutopilotStart

FIRST_PORT = 9002
"""UDP port of the simulator for ArduPilot's instance 0."""
_ANY, _OWN = "0.0.0.0", "127.0.0.1"
_FILE = "drone.parm"
_SYSTEMS = 255  # numbers of MAVLink
_FASTEST = 1000  # --speedup with which ArduPilot never sleeps
_ADVICE = (
    "build ArduPilot with `./waf configure --board sitl` and `./waf copter`, and name its "
    "build/sitl"
)


class ArduPilotBuild:
    """A build of ArduPilot for SITL, and the processes that were started from it.

    Args:
        start: The simulation, whose `build` has `bin/arducopter`.

    Raises:
        ValueError: The folder has no build.
    """

    def __init__(self, start: AutopilotStart) -> None:
        folder = start.build
        self._program = folder.resolve() / "bin" / "arducopter"
        if not self._program.exists():
            there = f"there is no {shown_path(self._program)}"
            raise ValueError(f"build: {shown_path(folder)} has no ArduPilot: {there}; {_ADVICE}")
        if not os.access(self._program, os.X_OK):
            raise ValueError(f"build: {shown_path(self._program)} cannot be run; {_ADVICE}")
        self._settings = start.settings
        self._speedup = start.config.real_time_factor or _FASTEST
        self._parameters = parameters(start.config.drone_model, start.settings)
        self._processes = Processes("ardupilot", "ArduPilot", start.work, start.logger)

    def start(self, instance: int) -> Path:
        """Start a process; see `AutopilotBuild`."""
        folder, address = self._processes.folder(instance), self._settings.address
        (folder / _FILE).write_text(self._parameters)
        command: list[str | Path] = [self._program]
        command += ["--model", f"JSON:{_OWN if address == _ANY else address}"]
        command += ["-I", str(instance), "--sysid", str(instance % _SYSTEMS + 1)]
        command += ["--home", self._settings.home, "--defaults", _FILE]
        command += ["--speedup", f"{self._speedup:g}"]
        # It would wait for somebody at the first of these ports before it boots.
        command += ["--serial0", "tcp:0", "--serial1", f"udpclient:{_OWN}:14550"]
        return self._processes.start(instance, command)

    def close(self) -> None:
        """End all processes."""
        self._processes.close()
