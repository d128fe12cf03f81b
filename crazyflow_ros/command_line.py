"""The command line: `python -m crazyflow_ros --help`.

It starts the simulator and commands a running one, like `ros2` on machines without that tool.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crazyflow_ros.simulator_arguments import add_simulator_arguments
from crazyflow_ros.version import package_version

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient

_EPILOG = """
Without a command, or with --ros-args alone, it starts the simulator:
  python -m crazyflow_ros --ros-args -p drones:=[cf0,cf1] -p real_time_factor:=2.0
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    program = argparse.ArgumentParser(
        prog="python -m crazyflow_ros",
        description="A ROS 2 simulator of quadrotors, and commands for a running one.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    program.add_argument("--version", action="version", version=package_version())
    commands = program.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, text: str, *drone: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        for argument in drone:
            added.add_argument(argument, help="name of a drone")
        add_simulator_arguments(added)
        return added

    for name, text in (
        ("run", "run the simulator; further arguments are passed to ROS"),
        ("crazyflie-server", "run the simulator as crazyswarm2's server"),
    ):
        simulator = commands.add_parser(name, help=text, description=text)
        simulator.add_argument(
            "arguments", nargs=argparse.REMAINDER, help="--ros-args -p name:=value ..."
        )
    takeoff = command("takeoff", "take off to a height and wait until the drone hovers", "drone")
    takeoff.add_argument(
        "height", type=float, nargs="?", default=1.0, help="above the floor [m], default 1.0"
    )
    go_to = command(
        "go-to", "fly to a position in the map and wait until the drone hovers", "drone"
    )
    for axis in "xyz":
        go_to.add_argument(axis, type=float, help="position in the map [m]")
    go_to.add_argument("yaw", type=float, nargs="?", default=0.0, help="heading [rad], default 0")
    command("land", "land and wait until the drone is on the floor", "drone")
    command("pause", "pause the simulation")
    command("resume", "resume the simulation")
    step = command("step", "advance a paused simulation by ticks")
    step.add_argument("ticks", type=int, nargs="?", default=1, help="number of ticks, default 1")
    reset = command("reset", "reset all drones, or one")
    reset.add_argument("drone", nargs="?", help="name of a drone")
    command("list", "list drones with positions, topics and services")
    echo = command("echo", "print the messages of a topic, until Ctrl-C")
    echo.add_argument("topic", help="for example /cf0/odom")
    echo.add_argument("--once", action="store_true", help="stop after one message")
    return program


def main(arguments: Sequence[str]) -> int:
    """Run a command on a running simulator, and return the exit code."""
    options = parser().parse_args(arguments)
    from crazyflow_ros.ros.middleware import configure_middleware

    configure_middleware()
    from crazyflow_ros.client import SimulationError, SimulatorClient

    try:
        with SimulatorClient(options.node, options.namespace) as simulation:
            _carry_out(simulation, options)
            sys.stdout.flush()
    except SimulationError as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # as in `list | head`: nobody reads any further
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _carry_out(simulation: SimulatorClient, options: argparse.Namespace) -> None:
    match options.command:
        case "takeoff":
            simulation.drone(options.drone).takeoff(options.height)
        case "go-to":
            place = options.x, options.y, options.z
            simulation.drone(options.drone).go_to(*place, options.yaw)
        case "land":
            simulation.drone(options.drone).land()
        case "pause":
            simulation.pause()
        case "resume":
            simulation.resume()
        case "step":
            simulation.step(options.ticks)
        case "reset" if options.drone:
            simulation.drone(options.drone).reset()
        case "reset":
            simulation.reset()
        case "list":
            _list(simulation)
        case "echo":
            simulation.echo(options.topic, once=options.once)


def _list(simulation: SimulatorClient) -> None:
    for name in simulation.drones:
        x, y, z = simulation.drone(name).position
        print(f"{name}: ({x:.3f}, {y:.3f}, {z:.3f}) m")
    node = simulation.node
    for what, listed in (
        ("topics", node.get_topic_names_and_types()),
        ("services", node.get_service_names_and_types()),
    ):
        print(f"\n{what}")
        for name, types in sorted(listed):
            print(f"  {name}  {', '.join(types)}")
