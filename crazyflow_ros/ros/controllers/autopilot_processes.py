"""The processes of a door's autopilot: parameters `autopilot.build` and `autopilot.work`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.doors import DoorSettings
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.throttled_logger import ThrottledLogger

if TYPE_CHECKING:
    from crazyflow_ros.doors.program import Autopilot, StartedAutopilots


def prepared(
    settings: DoorSettings, parameters: Parameters, log: ThrottledLogger
) -> StartedAutopilots | None:
    """Return the processes of the autopilot, still to be started; None without a build.

    Args:
        settings: Of the door.
        parameters: Parameters of the simulator.
        log: Says which process has ended.

    Raises:
        ParameterError: The door has no autopilot that can be started, or there is no build of it.
    """
    p, given = parameters, parameters.autopilot
    if not given.build:
        return None
    autopilot = _autopilot(p.door)
    if autopilot is None:
        text = f"nothing, because the door {p.door} starts no autopilot"
        raise ParameterError("autopilot.build", text, given.build)
    from crazyflow_ros.doors.program import AutopilotStart, StartedAutopilots

    folders = Path(given.build).expanduser(), Path(given.work or f"{p.door}_work").expanduser()
    start = AutopilotStart(*folders, p.simulation_config(), settings, log, given.wipe)
    try:
        return StartedAutopilots(autopilot, start, p.by_door)
    except (ValueError, OSError) as error:
        raise ParameterError("autopilot.build", str(error)) from None


def _autopilot(door: str) -> Autopilot | None:
    """Return the autopilot of a door, if it has one that can be started."""
    match door:
        case "px4":
            from crazyflow_ros.doors.px4.program import PX4

            return PX4
        case "ardupilot":
            from crazyflow_ros.doors.ardupilot.program import ARDUPILOT

            return ARDUPILOT
        case "crazyflie_firmware":
            from crazyflow_ros.doors.crazyflie_firmware.program import FIRMWARE

            return FIRMWARE
    return None
