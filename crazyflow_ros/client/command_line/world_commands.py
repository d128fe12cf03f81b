"""Commands for the world: drones and objects that come and go, the scene, the wind."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from crazyflow_ros.client.command_line import text
from crazyflow_ros.client.command_line.command import DRONE, SimulatorCommand, argument

if TYPE_CHECKING:
    from crazyflow_ros.client import SimulatorClient


def _spawn(simulation: SimulatorClient, options: Namespace) -> str:
    place = options.x, options.y, options.z
    name = simulation.world.spawn(options.name, *place, options.yaw, model=options.model)
    pose = simulation.world.poses()[name].position
    return f"{name} is at {text.place((pose.x, pose.y, pose.z))}"


def _remove(simulation: SimulatorClient, options: Namespace) -> str:
    simulation.world.remove(options.name)
    return f"{options.name} is removed"


def _list(simulation: SimulatorClient, _: Namespace) -> str:
    worlds = simulation.world.available()
    return text.table([*worlds.items()]) if worlds else "there are no worlds"


def _load(simulation: SimulatorClient, options: Namespace) -> str:
    name = simulation.world.load(options.world)
    return f"world {name} is loaded; time stands still at its start, resume lets it go on"


def _unload(simulation: SimulatorClient, _: Namespace) -> str:
    simulation.world.unload()
    return "no world is loaded any more; time stands still until one is"


def _attach(simulation: SimulatorClient, options: Namespace) -> str:
    given = ("reach", "length", "stiffness", "damping")
    how = {name: value for name in given if (value := getattr(options, name)) is not None}
    drone = simulation.drone(options.drone)
    return drone.attach(options.body, cable=options.length is not None, **how)


def _detach(simulation: SimulatorClient, options: Namespace) -> str:
    return simulation.drone(options.drone).detach()


def _set_wind(simulation: SimulatorClient, options: Namespace) -> str:
    values = {"wind": [options.x, options.y, options.z]}
    if options.gusts is not None:
        values["gust_intensity"] = options.gusts
    simulation.warnings()
    simulation.parameters.set(values)
    return _wind(simulation, options)


def _wind(simulation: SimulatorClient, _: Namespace) -> str:
    get = simulation.parameters.get
    return text.wind(get("wind"), get("gust_intensity"))


_HEADING = argument("yaw", type=float, nargs="?", default=0.0, help="heading [rad], default 0")

COMMANDS = (
    SimulatorCommand(
        "spawn",
        "add a drone, or with --model an object",
        _spawn,
        (
            argument("name", help="its name"),
            *(
                argument(axis, type=float, nargs="?", default=0.0, help="place [m], default 0")
                for axis in "xyz"
            ),
            _HEADING,
            argument(
                "--model",
                default="",
                help="name of an object that the simulator knows, or path of an MJCF or URDF file; "
                "default: the simulator's model of drones",
            ),
        ),
        ("spawn cf7 1 0", "spawn box 2.0 0.0 0.5 --model box", "spawn gate 3 0 --model gate.xml"),
    ),
    SimulatorCommand(
        "remove",
        "remove a drone or an object",
        _remove,
        (argument("name", help="its name"),),
        ("remove cf7", "remove box"),
    ),
    SimulatorCommand(
        "attach",
        "let a drone hold an object or another drone, as it is now or on a cable",
        _attach,
        (
            DRONE,
            argument("body", nargs="?", default="", help="what to hold, default the nearest"),
            argument("--reach", type=float, metavar="M", help="how far it may be, default 0.1 m"),
            argument(
                "--cable",
                dest="length",
                type=float,
                nargs="?",
                const=0.0,
                metavar="M",
                help="hold it on a cable of this length [m], default the present distance",
            ),
            argument(
                "--stiffness", type=float, metavar="N/M", help="of a cable that stretches [N/m]"
            ),
            argument("--damping", type=float, metavar="NS/M", help="of such a cable [N s/m]"),
        ),
        ("attach cf0", "attach cf0 box --cable 0.5", "attach cf0 cf1 --cable --stiffness 5"),
    ),
    SimulatorCommand(
        "detach", "let a drone let go of what it holds", _detach, (DRONE,), ("detach cf0",)
    ),
    SimulatorCommand(
        "world list", "list the worlds that can be loaded", _list, examples=("world list",)
    ),
    SimulatorCommand(
        "world current",
        "print which world is loaded",
        lambda simulation, _: simulation.world.current(),
        examples=("world current",),
    ),
    SimulatorCommand(
        "world load",
        "load a world; the drones go back to their start, and time stands still",
        _load,
        (argument("world", help="name of a world, or path of an MJCF file"),),
        ("world load race_track", "world load my_world.xml"),
    ),
    SimulatorCommand("world unload", "remove the world", _unload, examples=("world unload",)),
    SimulatorCommand("wind get", "print the wind", _wind, examples=("wind get",)),
    SimulatorCommand(
        "wind set",
        "set the wind",
        _set_wind,
        (
            argument("x", type=float, help="velocity of the air to the east [m/s]"),
            argument("y", type=float, help="to the north [m/s]"),
            argument("z", type=float, nargs="?", default=0.0, help="upwards [m/s], default 0"),
            argument(
                "--gusts",
                type=float,
                metavar="M/S",
                help="standard deviation of the vertical gusts [m/s], default as before",
            ),
        ),
        ("wind set 2 0", "wind set 0 -3 --gusts 0.3", "wind set 0 0 --gusts 0"),
    ),
)
