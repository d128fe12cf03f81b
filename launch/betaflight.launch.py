"""Start the simulator, and Betaflight for one of its drones.

    ros2 launch crazyflow_ros betaflight.launch.py build:=betaflight/obj/betaflight_4.6.0_SITL

With `gamepad:=true`, a gamepad moves its sticks, by joy_node of the package joy. With
`drones:=[cf0,cf1] door_drones:=[cf0]` commands and topics fly the others. All arguments of
`sim.launch.py` are passed to the simulator.
"""

from __future__ import annotations

import os
from pathlib import Path

from launch import Action, LaunchDescription
from launch.actions import ExecuteProcess
from launch_ros.actions import Node

from crazyflow_ros.ros.launch_autopilots import LaunchedAutopilot, autopilot_description
from crazyflow_ros.ros.launch_nodes import require
from crazyflow_ros.ros.launch_support import flag

BETAFLIGHT = LaunchedAutopilot("betaflight", "the program betaflight_..._SITL", 0)
GAMEPAD = {"gamepad": ("false", "true or false: also start joy_node, for a gamepad")}
_SETTINGS = "eeprom.bin"


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; launch starts Betaflight, and ends it with the simulator."""
    return autopilot_description(__file__, BETAFLIGHT, GAMEPAD, start=_start)


def _start(given: dict[str, str]) -> list[Action]:
    if not flag(given, "gamepad"):
        return _betaflight(given)
    require("joy")
    node = Node(package="joy", executable="joy_node", namespace=given["namespace"])
    return [*_betaflight(given), node]


def _betaflight(given: dict[str, str]) -> list[Action]:
    if not given["build"]:
        return []
    program = Path(given["build"]).expanduser().absolute()
    if not os.access(program, os.X_OK) or not program.is_file():
        raise ValueError(f"build: expected a program of Betaflight's SITL, got {str(program)!r}")
    folder = Path(given["work"] or "betaflight_work").expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    if flag(given, "wipe"):
        (folder / _SETTINGS).unlink(missing_ok=True)
    return [ExecuteProcess(cmd=[str(program), "127.0.0.1"], cwd=str(folder), output="screen")]
