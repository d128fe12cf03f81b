"""The command line of the demonstration: `name:=value`, as with ros2 launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.checks.plain_values import ParameterError, Spec, declarations
from crazyflow_ros.demo.trajectory import SHORTEST
from crazyflow_ros.drones import DEFAULT_DRONE, Drone
from crazyflow_ros.drones.parameter import own_drone


class WrongArgument(ValueError):
    """A wrong argument; the message names it and the expected values."""


def _check_plot(name: str, path: str) -> None:
    if Path(path).suffix not in (".png", ".pdf", ".svg"):
        raise ParameterError(name, "a path that ends in .png, .pdf or .svg", path)


@dataclass(frozen=True)
class Arguments:
    """Arguments of the demonstration."""

    n_drones: Annotated[int, Spec("number of drones, named cf0, cf1 and so on", 1, 1000)] = 4
    real_time_factor: Annotated[
        float, Spec("simulated time over wall time; 0 is as fast as possible", 0)
    ] = 1.0
    duration: Annotated[float, Spec("duration of the flight, simulated seconds", SHORTEST)] = 30.0
    drone_model: Annotated[
        str,
        Spec(
            f"one of {', '.join(Drone)}, or the path of a drone's folder",
            choices=list(Drone),
            otherwise=own_drone,
        ),
    ] = DEFAULT_DRONE
    sensors: Annotated[str, Spec("YAML file with sensors of the drones; empty: no sensors")] = ""
    view: Annotated[
        bool,
        Spec("true: show the flight on a page in a browser, which stays open until Ctrl-C"),
    ] = False
    scene: Annotated[
        str,
        Spec(
            "scene of the simulator, such as room; empty: the room with view:=true and up to "
            "four drones, else a floor"
        ),
    ] = ""
    plot: Annotated[
        str,
        Spec("path of the picture; the simulator's log is saved beside it", check=_check_plot),
    ] = "out/flight.png"

    @classmethod
    def parse(cls, words: Sequence[str]) -> Arguments:
        """Parse a command line.

        Raises:
            UsageError: A word is not `name:=value`, or a name or value is unknown.
        """
        known = {declaration.name: declaration for declaration in declarations(cls)}
        values: dict[str, Any] = {}
        for word in words:
            name, separator, text = word.partition(":=")
            if not separator:
                raise WrongArgument(f"expected name:=value, got {word!r}")
            if name not in known:
                raise WrongArgument(unknown("argument", name, known))
            try:
                values[name] = known[name].parsed(text)
            except ValueError as error:
                raise WrongArgument(str(error)) from None
        return cls(**values)


def usage() -> str:
    """Return the help text."""
    lines = [
        f"  {f'{argument.name}:={_written(argument.default)}':<28} {argument.spec.description}"
        for argument in declarations(Arguments)
    ]
    return "\n".join(
        [
            "Fly figure-eights in ROS 2: start the simulator, and a client in a separate process",
            "that takes off, flies and lands all drones.",
            "",
            "  python -m crazyflow_ros.demo [name:=value ...]",
            "",
            *lines,
        ]
    )


def _written(value: Any) -> str:
    """Return a value as written on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)
