"""A drone's folder with identified parameters."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.identification.fit import Fit

_FITTED = tuple(str(model) for model in Dynamics if not model.has_rotors)
_UNITS = {
    "rpy_coef": "1/s^2",
    "rpy_rates_coef": "1/s",
    "cmd_rpy_coef": "1/s^2",
    "cmd_f_coef": "thrust over commanded thrust",
    "thrust_dyn_coef": "1/s",
}


def write_drone(folder: str | Path, drone: str, fits: Mapping[str, Fit]) -> Path:
    """Write the folder of a drone that flies with identified models.

    All other figures, and the drawing, are those of a known drone. The identified drag is that of
    all its models.

    Args:
        folder: Path of the folder, which must not exist.
        drone: Name of the known drone, or path of its folder.
        fits: Results of `identify`.

    Returns:
        The absolute path; `str` of it is for `Sim(drone=...)`.

    Raises:
        FileExistsError: The folder exists.
        OSError: It cannot be written.
        ValueError: There is no such drone.
    """
    source, target = folder_of(drone), Path(folder).resolve()
    drag = fits[Dynamics.so_rpy_rotor_drag].values
    drag_line = _line("drag", [*drag["drag_xy"], *drag["drag_xy"], *drag["drag_z"]], "N/(m/s)")
    text = _without_fits((source / FIGURES).read_text())
    text, count = re.subn(r"^drag *=.*$", lambda _: drag_line, text, count=1, flags=re.MULTILINE)
    assert count == 1, "checked figures have a drag"
    tables = "\n".join(_tables(fits))
    text = f"{text.rstrip()}\n\n{tables}"
    tomllib.loads(text)
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.name != FIGURES:
            write_file(target / file.name, file.read_bytes())
    write_file(target / FIGURES, text.encode())
    load_drone(target)  # what it refuses should not have been written
    return target


def _without_fits(text: str) -> str:
    """Return the file without the tables of the fitted models."""
    tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    is_fit = re.compile(rf"\[({'|'.join(_FITTED)})\]")
    return "".join(table for table in tables if not is_fit.match(table))


def _tables(fits: Mapping[str, Fit]) -> Iterable[str]:
    rotation = fits["rotation"].values
    for model in _FITTED:
        yield f"[{model}]  # identified from flights"
        if model == Dynamics.so_rpy:
            yield _line("acc_coef", 0.0, "N, offset of the thrust")
            for name, (level, yaw) in rotation.items():
                yield _line(name, [level, level, yaw], _UNITS[name])
        for name, value in fits[model].values.items():
            if name in _UNITS:
                yield _line(name, float(value[0]), _UNITS[name])
        yield ""


def _line(name: str, value: float | list[float], unit: str) -> str:
    numbers = np.asarray(value, float).tolist()
    return f"{name} = {numbers}  # {unit}"
