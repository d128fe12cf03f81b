"""Starts PX4 from a build, a process for each drone."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from crazyflow_ros.checks.limits import shown_path
from crazyflow_ros.doors.autopilot import Autopilot
from crazyflow_ros.doors.processes import Processes
from crazyflow_ros.doors.px4.airframe import NUMBER, airframe, file_name, simulator_model
from crazyflow_ros.runtime.door_settings import AutopilotStart

FIRST_PORT = 4560
"""TCP port of PX4's instance 0; the others follow."""
_AIRFRAMES = Path("init.d-posix", "airframes")
_ADVICE = (
    "build PX4 with `make px4_sitl_default` in PX4-Autopilot, and name its build/px4_sitl_default"
)


def _who_connects(port: int, instance: int) -> str:
    local, remote = 14580 + instance, min(14540 + instance, 14549)
    return (
        f"PX4 -i {instance} on TCP {port}; QGroundControl on UDP 14550; MAVSDK "
        f"udpin://127.0.0.1:{remote}; MAVROS fcu_url:=udp://:{remote}@127.0.0.1:{local}"
    )


PX4 = Autopilot(
    name="px4",
    title="PX4",
    first_port=FIRST_PORT,
    ports=1,
    freq=500,
    connects=_who_connects,
)


class Build:
    """A build of PX4 for SITL, and the processes that were started from it.

    Args:
        start: The simulation, whose `build` has `bin/px4` and `etc`.

    Raises:
        ValueError: The folder has no build.
        OSError: A file cannot be written.
    """

    def __init__(self, start: AutopilotStart) -> None:
        folder = start.build
        self._program = folder.resolve() / "bin" / "px4"
        self._drone_model = start.config.drone_model
        self._factor = start.config.real_time_factor
        etc = folder.resolve() / "etc"
        for path in (self._program, etc / _AIRFRAMES):
            if not path.exists():
                there = f"there is no {shown_path(path)}"
                raise ValueError(f"build: {shown_path(folder)} has no PX4: {there}; {_ADVICE}")
        if not os.access(self._program, os.X_OK):
            raise ValueError(f"build: {shown_path(self._program)} cannot be run; {_ADVICE}")
        self._processes = Processes("px4", "PX4", start.work, start.logger)
        with ExitStack() as stack:
            own = tempfile.TemporaryDirectory(prefix="crazyflow_ros_px4_")
            self._etc = Path(stack.enter_context(own))
            _link(etc, self._etc, _AIRFRAMES.parts)
            name = file_name(self._drone_model)
            (self._etc / _AIRFRAMES / name).unlink(missing_ok=True)
            (self._etc / _AIRFRAMES / name).write_text(airframe(self._drone_model))
            self._closing = stack.pop_all()

    def start(self, instance: int) -> Path:
        """Start a process; see `AutopilotBuild`."""
        variables = {
            "PX4_SYS_AUTOSTART": str(NUMBER),
            "PX4_SIM_MODEL": simulator_model(self._drone_model),
        }
        if self._factor > 1:
            variables["PX4_SIM_SPEED_FACTOR"] = f"{self._factor:g}"
        # As a daemon, without a shell; the last word is the folder with its scripts.
        command: list[str | Path] = [self._program, "-i", str(instance), "-d", self._etc]
        return self._processes.start(instance, command, variables)

    def close(self) -> None:
        """End all processes."""
        self._processes.close()
        self._closing.close()


def _link(source: Path, target: Path, own: tuple[str, ...]) -> None:
    """Fill a folder with links to what is in another, except for a path of folders of its own."""
    for path in source.iterdir():
        if own and path.name == own[0]:
            (target / path.name).mkdir()
            _link(path, target / path.name, own[1:])
        else:
            (target / path.name).symlink_to(path)
