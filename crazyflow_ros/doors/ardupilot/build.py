"""Starts ArduPilot from a build, a process for each drone."""

from __future__ import annotations

import os
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.doors.autopilot import Autopilot
from crazyflow_ros.doors.processes import Processes
from crazyflow_ros.runtime.door_settings import AutopilotStart

FIRST_PORT = 9002
"""UDP port of the simulator for ArduPilot's instance 0."""
PORTS = 10
"""UDP ports from one instance of ArduPilot to the next."""
_MAVLINK = 5760  # TCP port of instance 0
_ANY, _OWN = "0.0.0.0", "127.0.0.1"
_FILE = "drone.parm"
_SYSTEMS = 255  # numbers of MAVLink
_FASTEST = 1000  # --speedup with which ArduPilot never sleeps
_ADVICE = (
    "build ArduPilot with `./waf configure --board sitl` and `./waf copter`, and name its "
    "build/sitl"
)


def _who_connects(port: int, instance: int) -> str:
    tcp = _MAVLINK + PORTS * instance
    return (
        f"ArduPilot -I {instance} on UDP {port}; QGroundControl on UDP 14550; MAVProxy --master "
        f"tcp:127.0.0.1:{tcp}; MAVSDK tcpout://127.0.0.1:{tcp}; MAVROS "
        f"fcu_url:=tcp://127.0.0.1:{tcp}"
    )


ARDUPILOT = Autopilot(
    name="ardupilot",
    title="ArduPilot",
    first_port=FIRST_PORT,
    ports=PORTS,
    freq=500,
    connects=_who_connects,
)


class ArduPilotBuild:
    """A build of ArduPilot for SITL, and the processes that were started from it.

    Args:
        start: The simulation, whose `build` has `bin/arducopter`.
        address: Address of the simulator.
        home: Place of the drones, as ArduPilot's option --home.
        parameters: Content of the file of its option --defaults.

    Raises:
        ValueError: The folder has no build.
    """

    def __init__(self, start: AutopilotStart, address: str, home: str, parameters: str) -> None:
        folder = start.build
        self._program = folder.resolve() / "bin" / "arducopter"
        if not self._program.exists():
            there = f"there is no {shown_path(self._program)}"
            raise ValueError(f"build: {shown_path(folder)} has no ArduPilot: {there}; {_ADVICE}")
        if not os.access(self._program, os.X_OK):
            raise ValueError(f"build: {shown_path(self._program)} cannot be run; {_ADVICE}")
        self._address, self._home, self._parameters = address, home, parameters
        self._speedup = start.config.real_time_factor or _FASTEST
        self._processes = Processes("ardupilot", "ArduPilot", start.work, start.logger)

    def start(self, instance: int) -> Path:
        """Start a process; see `AutopilotBuild`."""
        folder, address = self._processes.folder(instance), self._address
        (folder / _FILE).write_text(self._parameters)
        command: list[str | Path] = [self._program]
        command += ["--model", f"JSON:{_OWN if address == _ANY else address}"]
        command += ["-I", str(instance), "--sysid", str(instance % _SYSTEMS + 1)]
        command += ["--home", self._home, "--defaults", _FILE]
        command += ["--speedup", f"{self._speedup:g}"]
        # It would wait for somebody at the first of these ports before it boots.
        command += ["--serial0", "tcp:0", "--serial1", f"udpclient:{_OWN}:14550"]
        return self._processes.start(instance, command)

    def close(self) -> None:
        """End all processes."""
        self._processes.close()
