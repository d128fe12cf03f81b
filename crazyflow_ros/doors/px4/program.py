"""The program `px4`: drones for PX4 without ROS, and PX4 itself where there is a build of it."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.program import Autopilot, run
from crazyflow_ros.doors.px4.build import Build
from crazyflow_ros.doors.px4.door import Px4

FIRST_PORT = 4560
"""TCP port of PX4's instance 0; the others follow."""


def main(words: Sequence[str] | None = None, program: str = "px4") -> int:
    """Simulate drones that PX4 flies, and start PX4, without ROS.

    It runs until a signal arrives, see `doors.program.run`.
    """
    return run(PX4, words, program)


def _who_connects(port: int, instance: int) -> str:
    local, remote = 14580 + instance, min(14540 + instance, 14549)
    return (
        f"PX4 -i {instance} on TCP {port}; QGroundControl on UDP 14550; MAVSDK "
        f"udpin://127.0.0.1:{remote}; MAVROS fcu_url:=udp://:{remote}@127.0.0.1:{local}"
    )


PX4 = Autopilot(
    name="px4",
    title="PX4",
    settings=Px4,
    first_port=FIRST_PORT,
    ports=1,
    freq=500,
    build=Build,
    connects=_who_connects,
)
