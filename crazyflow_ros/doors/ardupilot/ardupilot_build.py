"""Starts ArduPilot from a build, a process for each drone."""

from __future__ import annotations

from pathlib import Path

from crazyflow_ros.doors.autopilot import Autopilot, AutopilotBuild, connectable
from crazyflow_ros.runtime.door_settings import AutopilotStart

FIRST_PORT = 9002
"""UDP port of the simulator for ArduPilot's instance 0."""
PORTS = 10
"""UDP ports from one instance of ArduPilot to the next."""
_MAVLINK = 5760  # TCP port of instance 0
_FILE = "drone.parm"
_SYSTEMS = 255  # numbers of MAVLink
_FASTEST = 1000  # --speedup with which ArduPilot never sleeps


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
    program="bin/arducopter",
    advice="build ArduPilot with `./waf configure --board sitl` and `./waf copter`, and name its "
    "build/sitl",
    connects=_who_connects,
)


class ArduPilotBuild(AutopilotBuild):
    """A build of ArduPilot for SITL, which has `bin/arducopter`.

    Args:
        port: Port of the first drone.
        start: The simulation.
        address: Address of the simulator.
        home: Place of the drones, as ArduPilot's option --home.
        parameters: Content of the file of its option --defaults.

    Raises:
        ValueError: The folder has no build, or no instance has the port.
    """

    def __init__(
        self, port: int, start: AutopilotStart, address: str, home: str, parameters: str
    ) -> None:
        super().__init__(ARDUPILOT, port, start)
        self._address, self._home, self._parameters = connectable(address), home, parameters
        self._speedup = start.config.real_time_factor or _FASTEST

    def _command(self, instance: int, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
        (folder / _FILE).write_text(self._parameters)
        command: list[str | Path] = [self._program, "--model", f"JSON:{self._address}"]
        command += ["-I", str(instance), "--sysid", str(instance % _SYSTEMS + 1)]
        command += ["--home", self._home, "--defaults", _FILE]
        command += ["--speedup", f"{self._speedup:g}"]
        # It would wait for somebody at the first of these ports before it boots.
        command += ["--serial0", "tcp:0", "--serial1", "udpclient:127.0.0.1:14550"]
        return command, {}
