"""Common parts of the launch files of autopilots. Needs `launch`, which is not on PyPI."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_nodes import described
from crazyflow_ros.ros.launch_support import flag, place, whole

DRONE_MODEL = "hb_x500"

ARGUMENTS = {
    "build": ("", "Build of the autopilot, {build}; empty: start the autopilots yourself"),
    "work": ("", "Folder for the parameters and logs of these autopilots"),
    "wipe": ("false", "true or false: remove these folders first, instead of keeping their state"),
    "home": ("", "Latitude, longitude [degrees] and altitude [m] of the origin, as 47.4,8.5,488"),
}
INSTANCE = {"instance": ("0", "Instance of the first drone's autopilot, which gives all its ports")}


@dataclass(frozen=True)
class LaunchedAutopilot:
    """An autopilot that a launch file starts with the simulator."""

    door: str
    """Name of its door."""
    build: str
    """Kind of its build."""
    first_port: int
    """Port of instance 0; 0 if there is only one instance."""
    ports: int = 1
    """Number of ports from one instance to the next."""


def autopilot_description(
    file: str,
    autopilot: LaunchedAutopilot,
    more: Mapping[str, tuple[str, str]] | None = None,
    configure: Callable[[dict[str, str]], None] = lambda _: None,
    start: Callable[[dict[str, str]], Sequence[Action]] = lambda _: (),
) -> LaunchDescription:
    """Return the description of the launch file of an autopilot, which includes `sim.launch.py`.

    Args:
        file: Path of the launch file.
        autopilot: The autopilot.
        more: Defaults and descriptions of further arguments.
        configure: Changes the arguments, before those of the simulator follow from them.
        start: Returns further processes for the arguments.
    """
    arguments = ARGUMENTS | (INSTANCE if autopilot.first_port else {}) | dict(more or {})

    def prepare(context: LaunchContext) -> None:
        given = context.launch_configurations
        configure(given)
        _configure(autopilot, given)

    return described(
        file,
        [
            *(
                DeclareLaunchArgument(
                    name, default_value=value, description=text.format(build=autopilot.build)
                )
                for name, (value, text) in arguments.items()
            ),
            DeclareLaunchArgument(
                "n_drones", default_value="1", description="Number of drones, named cf0, cf1, ..."
            ),
            DeclareLaunchArgument(
                "drone_model",
                default_value=DRONE_MODEL,
                description="Model of all drones, for example hb_x500, or path of a folder",
            ),
            OpaqueFunction(function=prepare),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(str(resource("launch", "sim.launch.py")))
            ),
            OpaqueFunction(function=lambda context: [*start(context.launch_configurations)]),
        ],
    )


def _configure(autopilot: LaunchedAutopilot, given: dict[str, str]) -> None:
    settings: dict[str, Any] = {}
    if autopilot.first_port:
        settings["port"] = autopilot.first_port + autopilot.ports * whole(given, "instance", 0)
    if given["home"]:
        settings |= dict(zip(("latitude", "longitude", "altitude"), place(given, "home")))
    given["door"] = autopilot.door
    given["door_settings"] = json.dumps(settings)
    if autopilot.first_port and given["build"]:
        given["autopilot.build"] = str(Path(given["build"]).expanduser())
        given["autopilot.work"] = given["work"]
        given["autopilot.wipe"] = str(flag(given, "wipe")).lower()
