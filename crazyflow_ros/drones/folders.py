"""The folders of drones: those of the package, by name, and those of users, by path."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import shown_path

AnyDrone: TypeAlias = str | os.PathLike[str]
"""Name of a drone of the package, or path of a drone's folder."""

FIGURES = "drone.toml"
"""File of a drone's folder with its figures."""
BUILT_IN = Path(__file__).parent
"""Folder of the drones of the package."""
DEFAULT_DRONE = "cf2x_L250"
"""Drone of the node, the demonstrations and the environments. `Sim` has Crazyflow's,
`Drone.default`."""

_NAME = re.compile(r"[\w.-]+", re.ASCII)


class Drone(StrEnum):
    """The drones of the package, one member for each folder. `default` is Crazyflow's default."""

    cf2x_L250 = "cf2x_L250"
    cf2x_P250 = "cf2x_P250"
    cf2x_T350 = "cf2x_T350"
    cf21B_500 = "cf21B_500"
    hb_x500 = "hb_x500"
    hexa_x680 = "hexa_x680"
    octo_x8 = "octo_x8"
    default = "cf21B_500"


def resolve(drone: AnyDrone) -> str:
    """Return the name of a drone of the package, or the absolute path of another drone's folder.

    Args:
        drone: Name, or path of a folder with a `drone.toml`. A path has a slash, or is a `Path`.

    Raises:
        ValueError: There is no such drone.
    """
    text = os.fspath(drone)
    if text in list(Drone) or (isinstance(drone, str) and "/" not in text):
        return member(Drone, text)
    try:
        folder = Path(text).expanduser().resolve()
        is_there = (folder / FIGURES).is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(f"drone {shown_path(text)!r} is not a path: {error}") from None
    if not is_there:
        raise ValueError(
            f"drone {shown_path(text)!r}: there is no file {shown_path(folder / FIGURES)}"
        )
    if not _NAME.fullmatch(folder.name):
        raise ValueError(
            f"drone {shown_path(text)!r}: folder names may have only letters, digits, '_', '-', '.'"
        )
    return str(folder)


def folder_of(drone: AnyDrone) -> Path:
    """Return the folder of a drone; arguments and errors are those of `resolve`."""
    return BUILT_IN / resolve(drone)  # an absolute path replaces what it is joined to


def model_name(drone: str) -> str:
    """Return the name of a drone, which is that of its folder."""
    return Path(drone).name
