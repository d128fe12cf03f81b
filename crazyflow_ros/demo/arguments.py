"""The command line of the demonstration: `name:=value`, as with ros2 launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from crazyflow_ros.demo.trajectory import SHORTEST
from crazyflow_ros.drones import DEFAULT_DRONE, Drone, resolve


class UsageError(ValueError):
    """An argument is wrong; the text says which, and what is expected."""


def _whole(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise UsageError(f"a whole number from 1 to 1000, got {text!r}")
    return int(text)


def _number(minimum: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not minimum <= value < math.inf:
            raise UsageError(f"a number of at least {minimum:g}, got {text!r}")
        return value

    return parse


def _drone_model(text: str) -> str:
    if text not in list(Drone) and "/" not in text:
        raise UsageError(f"one of {', '.join(Drone)}, got {text!r}")
    try:
        return resolve(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _path(text: str) -> str:
    if Path(text).suffix not in (".png", ".pdf", ".svg"):
        raise UsageError(f"a path that ends in .png, .pdf or .svg, got {text!r}")
    return text


def _argument(default: Any, parse: Callable[[str], Any], text: str) -> Any:
    return field(default=default, metadata={"parse": parse, "text": text})


@dataclass(frozen=True)
class Arguments:
    """What the demonstration can be told."""

    n_drones: int = _argument(4, _whole, "how many drones, named cf0, cf1 and so on")
    real_time_factor: float = _argument(
        1.0, _number(0), "simulated over wall time; 0 is as fast as possible"
    )
    duration: float = _argument(30.0, _number(SHORTEST), "of the flight, simulated seconds")
    drone_model: str = _argument(
        DEFAULT_DRONE, _drone_model, f"one of {', '.join(Drone)}, or the path of a drone's folder"
    )
    sensors: str = _argument("", str, "YAML file with what the drones carry; empty: nothing")
    plot: str = _argument(
        "out/flight.png", _path, "where the picture goes, and the simulator's log beside it"
    )

    @classmethod
    def parse(cls, words: Sequence[str]) -> Arguments:
        """Read a command line.

        Raises:
            UsageError: A word is no `name:=value`, or a name or value is unknown.
        """
        known = {field.name: field for field in fields(cls)}
        values: dict[str, Any] = {}
        for word in words:
            name, separator, text = word.partition(":=")
            if not separator:
                raise UsageError(f"expected name:=value, got {word!r}")
            if name not in known:
                raise UsageError(f"unknown argument {name!r}, have {', '.join(known)}")
            try:
                values[name] = known[name].metadata["parse"](text)
            except UsageError as error:
                raise UsageError(f"{name}: expected {error}") from None
        return cls(**values)


def usage() -> str:
    """The help text."""
    lines = [
        f"  {f'{field.name}:={field.default}':<28} {field.metadata['text']}"
        for field in fields(Arguments)
    ]
    return "\n".join(
        [
            "Fly figure-eights in ROS 2: start the simulator and, in a process of its own, a",
            "client that takes off, flies and lands all drones.",
            "",
            "  python -m crazyflow_ros.demo [name:=value ...]",
            "",
            *lines,
        ]
    )
