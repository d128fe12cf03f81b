"""Commands that are programs of their own."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crazyflow_ros.command_line.command import (
    REFUSED,
    Command,
    CommandParser,
    ProgramCommand,
    UsageError,
    argument,
    program_name,
)
from crazyflow_ros.resources import resource

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient


def _run(words: Sequence[str]) -> int:
    return _only_help("run", words)


def _crazyflie_server(words: Sequence[str]) -> int:
    return _only_help("crazyflie-server", words)


def _only_help(name: str, words: Sequence[str]) -> int:
    """Print the help of a simulator, which `__main__` runs unless that is asked for."""
    text = {program.name: program.text for program in COMMANDS}[name]
    drones = "--ros-args -p drones:=[cf0,cf1]"
    examples = (f"{name} {drones}", f"{name} --lock-step {drones} -- python script.py")
    parser = CommandParser(name, text, examples)
    parser.add_argument("arguments", nargs="*", help="--ros-args -p name:=value ...")
    parser.add_argument(
        "--lock-step",
        action="store_true",
        help="let the program after -- live in simulated time: it runs as fast as possible, and "
        "each time the same",
    )
    parser.parse_args(words)
    return 0


def _view(words: Sequence[str]) -> int:
    from crazyflow_ros.view.__main__ import main

    return main(words, f"{program_name()} view")


def _replay(words: Sequence[str]) -> int:
    from crazyflow_ros.extras import extra

    try:
        with extra("record"):
            import mcap  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"replay: {error}", file=sys.stderr)
        return REFUSED
    from crazyflow_ros.ros.recording.replay import run

    return run(words, f"{program_name()} replay")


def _reality(words: Sequence[str]) -> int:
    from crazyflow_ros.reality.__main__ import main

    return main(words, f"{program_name()} reality")


def _identify(words: Sequence[str]) -> int:
    from crazyflow_ros.identification.__main__ import main

    return main(words, f"{program_name()} identify")


def _px4(words: Sequence[str]) -> int:
    from crazyflow_ros.doors.px4.program import main

    return main(words, f"{program_name()} px4")


def _ardupilot(words: Sequence[str]) -> int:
    from crazyflow_ros.doors.ardupilot.program import main

    return main(words, f"{program_name()} ardupilot")


def _crazyflie_firmware(words: Sequence[str]) -> int:
    from crazyflow_ros.doors.crazyflie_firmware.program import main

    return main(words, f"{program_name()} crazyflie_firmware")


def _build_messages(words: Sequence[str]) -> int:
    CommandParser("build-messages", _BUILD_MESSAGES).parse_args(words)
    try:
        script = resource("interfaces", "build.py")
    except FileNotFoundError:
        print("build-messages: on a ROS machine, 'colcon build' builds them", file=sys.stderr)
        return REFUSED
    return subprocess.run([sys.executable, script]).returncode


def _fly(simulation: SimulatorClient, options: Namespace) -> str | None:
    if not sys.stdin.isatty():
        raise UsageError("it needs a terminal with a keyboard")
    from crazyflow_ros.demo.keyboard import fly

    drone = simulation.drone(options.drone or simulation.drones[0])
    simulation.need_time()
    fly(simulation, drone)
    return None


_BUILD_MESSAGES = "build the message packages that this environment lacks, after pip install"

COMMANDS: tuple[Command | ProgramCommand, ...] = (
    ProgramCommand("run", "run the simulator; further arguments are passed to ROS", _run),
    ProgramCommand(
        "crazyflie-server", "run the simulator as crazyswarm2's server", _crazyflie_server
    ),
    ProgramCommand("view", "show and steer the simulator, or a recording, in a browser", _view),
    Command(
        "fly",
        "fly a drone with the keyboard of this terminal",
        _fly,
        (argument("drone", nargs="?", help="name of a drone, default: the first one"),),
        ("fly", "fly cf1"),
    ),
    ProgramCommand(
        "replay", "fly a recording of the simulator again, and compare all states", _replay
    ),
    ProgramCommand(
        "reality", "fly recorded flights of real drones again, and compare the paths", _reality
    ),
    ProgramCommand(
        "identify", "fit the models of a drone to recorded flights, and write its folder", _identify
    ),
    ProgramCommand("px4", "simulate drones that PX4 flies, and start PX4, without ROS", _px4),
    ProgramCommand(
        "ardupilot",
        "simulate drones that ArduPilot flies, and start ArduPilot, without ROS",
        _ardupilot,
    ),
    ProgramCommand(
        "crazyflie_firmware",
        "simulate drones that the Crazyflie's firmware flies, and start it, without ROS",
        _crazyflie_firmware,
    ),
    ProgramCommand("build-messages", _BUILD_MESSAGES, _build_messages),
)
