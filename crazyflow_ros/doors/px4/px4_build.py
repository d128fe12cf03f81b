"""Starts PX4 from a build, a process for each drone."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from crazyflow_ros.doors.autopilot import Autopilot, AutopilotBuild
from crazyflow_ros.doors.px4.airframe import NUMBER, airframe, file_name, simulator_model
from crazyflow_ros.runtime.door_settings import AutopilotStart

FIRST_PORT = 4560
"""TCP port of PX4's instance 0; the others follow."""
_AIRFRAMES = Path("init.d-posix", "airframes")


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
    program="bin/px4",
    advice="build PX4 with `make px4_sitl_default` in PX4-Autopilot, and name its "
    "build/px4_sitl_default",
    connects=_who_connects,
    needs=(f"etc/{_AIRFRAMES}",),
)


class Px4Build(AutopilotBuild):
    """A build of PX4 for SITL, which has `bin/px4` and `etc`.

    Args:
        port: Port of the first drone.
        start: The simulation.

    Raises:
        ValueError: The folder has no build, or no instance has the port.
        OSError: A file cannot be written.
    """

    def __init__(self, port: int, start: AutopilotStart) -> None:
        super().__init__(PX4, port, start)
        self._model, factor = start.config.drone_model, start.config.real_time_factor
        self._variables = {
            "PX4_SYS_AUTOSTART": str(NUMBER),
            "PX4_SIM_MODEL": simulator_model(self._model),
        }
        if factor > 1:
            self._variables["PX4_SIM_SPEED_FACTOR"] = f"{factor:g}"
        with ExitStack() as stack:
            own = tempfile.TemporaryDirectory(prefix="crazyflow_ros_px4_")
            self._etc = Path(stack.enter_context(own))
            _link(start.build.resolve() / "etc", self._etc, _AIRFRAMES.parts)
            file = self._etc / _AIRFRAMES / file_name(self._model)
            file.unlink(missing_ok=True)
            file.write_text(airframe(self._model))
            self._closing = stack.pop_all()

    def _command(self, instance: int, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
        del folder
        # As a daemon, without a shell; the last word is the folder with its scripts.
        return [self._program, "-i", str(instance), "-d", self._etc], self._variables

    def close(self) -> None:
        """End all processes."""
        super().close()
        self._closing.close()


def _link(source: Path, target: Path, own: tuple[str, ...]) -> None:
    """Fill a folder with links to what another contains, except for a path of its own folders."""
    for path in source.iterdir():
        if own and path.name == own[0]:
            (target / path.name).mkdir()
            _link(path, target / path.name, own[1:])
        else:
            (target / path.name).symlink_to(path)
