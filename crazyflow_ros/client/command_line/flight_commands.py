"""Commands that fly drones, and the list of drones."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crazyflow_ros.client.command_line.command import (
    DRONE,
    DRONE_OR_ALL,
    SimulatorCommand,
    argument,
)
from crazyflow_ros.client.command_line.text import place, table

if TYPE_CHECKING:
    from crazyflow_ros.client import DroneClient, OngoingFlight, SimulatorClient

_SHORT = 3.0  # s of wall time until the progress of a flight is shown
_DURATION = argument(
    "--duration",
    type=float,
    default=0.0,
    metavar="SECONDS",
    help="how long it takes in simulated time, default as fast as allowed",
)


def _chosen(simulation: SimulatorClient, options: Namespace) -> list[DroneClient]:
    if options.drone == "all":
        return [simulation.drone(name) for name in simulation.drones]
    return [simulation.drone(options.drone)]


@contextmanager
def _watched(options: Namespace) -> Iterator[Callable[[OngoingFlight], None]]:
    """Yield a function that shows the progress of a flight; after Ctrl-C, say that it goes on."""
    from crazyflow_ros.client.progress import ProgressLine

    line, begin = ProgressLine(sys.stderr), time.monotonic()

    def watch(flight: OngoingFlight) -> None:
        if not options.quiet and time.monotonic() > begin + _SHORT:
            line.show(*flight.seconds, flight.progress)

    try:
        yield watch
    except KeyboardInterrupt:
        print(f"\n{options.drone} flies on, nobody waits for it any more", file=sys.stderr)
        raise
    finally:
        line.close()


def _fly(
    simulation: SimulatorClient,
    options: Namespace,
    start: Callable[[DroneClient], OngoingFlight],
    text: str,
) -> str:
    """Fly the chosen drones, and return a line about each with its name and position.

    If one drone refuses, the others still fly.
    """
    from crazyflow_ros.client import SimulationError

    simulation.need_time()
    flights, problems = [], []
    for drone in _chosen(simulation, options):
        try:
            flights.append((drone, start(drone)))
        except SimulationError as error:
            problems.append(str(error))
    with _watched(options) as watch:
        for _, flight in flights:
            try:
                flight.wait(watch=watch)
            except SimulationError as error:
                problems.append(str(error))
    if problems:
        raise SimulationError("\n".join(problems))
    return "\n".join(text.format(drone.name, place(drone.position)) for drone, _ in flights)


def _list(simulation: SimulatorClient, _: Namespace) -> str:
    drones = simulation.drone_status()
    if not drones:
        return "there are no drones, because no world is loaded"
    has_battery = any(drone.battery for drone in drones)
    rows = [["drone", "state", "position", "battery" if has_battery else ""]]
    for drone in drones:
        rows.append([drone.name, drone.state, place(drone.position), drone.battery])
    text = table(rows)
    if troubles := [f"{drone.name}: {drone.trouble}" for drone in drones if drone.trouble]:
        text += "\n\n" + "\n".join(troubles)
    names = {drone.name for drone in drones}
    if others := sorted(name for name in simulation.world.poses() if name not in names):
        text += f"\n\nobjects: {', '.join(others)}"
    return text


def _takeoff(simulation: SimulatorClient, options: Namespace) -> str:
    to = options.height, options.duration
    return _fly(simulation, options, lambda drone: drone.start_takeoff(*to), "{} hovers at {}")


def _go_to(simulation: SimulatorClient, options: Namespace) -> str:
    to = options.x, options.y, options.z, options.yaw, options.duration
    return _fly(simulation, options, lambda drone: drone.start_go_to(*to), "{} hovers at {}")


def _land(simulation: SimulatorClient, options: Namespace) -> str:
    to = options.duration
    return _fly(simulation, options, lambda drone: drone.start_landing(to), "{} stands at {}")


def _each(
    simulation: SimulatorClient,
    options: Namespace,
    command: Callable[[DroneClient], object],
    text: str,
) -> str:
    """Command the chosen drones, and return a text with their names."""
    drones = _chosen(simulation, options)
    for drone in drones:
        command(drone)
    return text.format(", ".join(drone.name for drone in drones))


def _emergency(simulation: SimulatorClient, options: Namespace) -> str:
    text = "rotors of {} are stopped, until a reset"
    return _each(simulation, options, lambda drone: drone.emergency(), text)


def _arm(simulation: SimulatorClient, options: Namespace) -> str:
    return _each(simulation, options, lambda drone: drone.arm(), "armed: {}")


def _disarm(simulation: SimulatorClient, options: Namespace) -> str:
    return _each(simulation, options, lambda drone: drone.arm(False), "disarmed: {}")


def _reset(simulation: SimulatorClient, options: Namespace) -> str:
    if options.drone in (None, "all"):
        simulation.reset()
        return "all drones are back at their start"
    simulation.drone(options.drone).reset()
    return f"{options.drone} is back at its start"


COMMANDS = (
    SimulatorCommand(
        "list",
        "list the drones with state, position and battery, and the objects",
        _list,
        examples=("list", "list --namespace /a"),
    ),
    SimulatorCommand(
        "takeoff",
        "take off to a height, and wait until the drone hovers",
        _takeoff,
        (
            DRONE_OR_ALL,
            argument(
                "height",
                type=float,
                nargs="?",
                default=1.0,
                help="above the floor [m], default 1.0",
            ),
            _DURATION,
        ),
        ("takeoff cf0", "takeoff cf0 0.5 --duration 4", "takeoff all 1.2"),
    ),
    SimulatorCommand(
        "go-to",
        "fly to a position in the map, and wait until the drone hovers",
        _go_to,
        (
            DRONE,
            *(argument(axis, type=float, help="position in the map [m]") for axis in "xyz"),
            argument(
                "yaw", type=float, nargs="?", default=0.0, help="heading [rad], default 0 (east)"
            ),
            _DURATION,
        ),
        ("go-to cf0 1.0 0.0 1.0", "go-to cf0 -1 2 0.5 1.57 --duration 6"),
    ),
    SimulatorCommand(
        "land",
        "land, and wait until the drone stands on the floor",
        _land,
        (DRONE_OR_ALL, _DURATION),
        ("land cf0", "land all"),
    ),
    SimulatorCommand(
        "emergency",
        "stop the rotors at once, wherever the drone is; a reset unlocks it",
        _emergency,
        (DRONE_OR_ALL,),
        ("emergency cf0", "emergency all"),
    ),
    SimulatorCommand(
        "arm",
        "allow a drone to take off, where flight.auto_arm is false",
        _arm,
        (DRONE_OR_ALL,),
        ("arm cf0", "arm all"),
    ),
    SimulatorCommand(
        "disarm",
        "stop the rotors, and forbid a drone to take off",
        _disarm,
        (DRONE_OR_ALL,),
        ("disarm cf0",),
    ),
    SimulatorCommand(
        "reset",
        "put a drone back to its start, or all",
        _reset,
        (argument("drone", nargs="?", help="name of a drone; none: all"),),
        ("reset", "reset cf0"),
    ),
)
