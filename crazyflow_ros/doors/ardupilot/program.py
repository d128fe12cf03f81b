"""The program `ardupilot`: drones for ArduPilot without ROS, and ArduPilot itself from a build."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.ardupilot.build import FIRST_PORT, ArduPilotBuild
from crazyflow_ros.doors.ardupilot.door import PORTS, ArduPilot
from crazyflow_ros.doors.program import Autopilot, run

_MAVLINK = 5760  # TCP port of instance 0


def main(words: Sequence[str] | None = None, program: str = "ardupilot") -> int:
    """Simulate drones that ArduPilot flies, and start ArduPilot, without ROS.

    It runs until a signal arrives, see `doors.program.run`.
    """
    return run(ARDUPILOT, words, program)


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
    settings=ArduPilot,
    first_port=FIRST_PORT,
    ports=PORTS,
    freq=500,
    build=ArduPilotBuild,
    connects=_who_connects,
)
