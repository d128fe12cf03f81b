"""The figures in `drone.toml`, as floats and NumPy arrays; `checked_figures.py` checks them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from crazyflow_ros.checks.limits import read_text
from crazyflow_ros.drones.checked_figures import NAMES, checked, common
from crazyflow_ros.drones.folders import BUILT_IN, FIGURES, AnyDrone, folder_of
from crazyflow_ros.drones.rotors import Rotors

_MOST_BYTES = 64 * 1024

T = TypeVar("T")


def load_drone(drone: AnyDrone) -> dict[str, Any]:
    """Read the figures of one drone.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.

    Returns:
        mass [kg], J (3, 3) [kg m^2], L [m], prop_inertia [kg m^2], thrust_min, thrust_max and
        idle_thrust [N, one rotor], rpm2thrust (3,) [N], rpm2torque (3,) [N m], rotor_dyn_coef (4,),
        drag_matrix (3, 3) [N/(m/s)], mixing_matrix (3, n), gravity_vec (3,) [m/s^2], the table
        `geometry` [m] (rotor_radius, rotor_z, foot_z, hull_half_width) and the n `rotors`. Where
        the drone has tables of its rotors, figures of one rotor and L are those of
        `Rotors.as_quadrotor`, so four times such a figure is that of the whole. If the drone has
        them, rotor_moment (2,) [N m/(m/s)], thrust_offset (3,) [m] and voltage2thrust (4,) [N of
        one rotor, polynomial in V at the motor].

    Raises:
        ValueError: There is no such drone, or its file has an impossible figure; the message names
            both.
    """
    tables, shared = _tables(folder_of(drone)), common()
    figures = {name: tables[name] for name in (*NAMES, "geometry") if name in tables}
    figures.setdefault("idle_thrust", figures["thrust_min"])
    principal_inertia, drag = figures.pop("J"), figures.pop("drag")
    rotors: Rotors = tables["rotors"]
    mixing = rotors.mixing(figures["L"]) if rotors.has_tables else shared["mixing_matrix"]
    return deepcopy(figures) | {
        "J": np.diag(principal_inertia),
        "drag_matrix": np.diag(drag),
        "mixing_matrix": np.array(mixing),
        "rotors": rotors,
        "gravity_vec": np.array(shared["gravity_vec"]),
    }


def rotors_of(drone: AnyDrone | Sequence[AnyDrone]) -> Rotors:
    """Return the rotors of a drone, or of the first of several that fly in one world.

    Raises:
        ValueError: There is no such drone, or its file has an impossible figure, or several drones
            differ in the number of their rotors, or only some have tables of them.
    """
    drones = [drone] if isinstance(drone, str | os.PathLike) else list(drone)
    first, *others = dict.fromkeys(folder_of(each) for each in drones)
    rotors: Rotors = _tables(first)["rotors"]
    for other in others:
        kind = len(own := _tables(other)["rotors"]), own.has_tables
        if kind != (len(rotors), rotors.has_tables):
            raise ValueError(
                "drones of one world must have the same number of rotors, and all or none of them "
                f"tables [[rotor]]: {first.name} has {len(rotors)} rotors, {other.name} {kind[0]}"
            )
    return rotors


def check_quadrotor(drone: AnyDrone | Sequence[AnyDrone], what: str) -> None:
    """Raise ValueError if drones have tables of their rotors; `what` takes quadrotors alone."""
    if (rotors := rotors_of(drone)).has_tables:
        first = drone if isinstance(drone, str | os.PathLike) else drone[0]
        name = folder_of(first).name
        raise ValueError(
            f"{what} is for quadrotors, but {name} has tables of its {len(rotors)} rotors"
        )


def load_model(drone: AnyDrone, model: str) -> dict[str, Any]:
    """Read the figures that a fitted model of a drone needs, besides mass and inertia.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.
        model: `so_rpy`, `so_rpy_rotor` or `so_rpy_rotor_drag`.

    Returns:
        acc_coef (1,) [N], cmd_f_coef (1,), rpy_coef (3,) [1/s^2], rpy_rates_coef (3,) [1/s],
        cmd_rpy_coef (3,) [1/s^2], thrust_min and thrust_max [N, one rotor]; the last two models
        also have thrust_dyn_coef (1,) [1/s], the last one drag_matrix (3, 3) [N/(m/s)].

    Raises:
        ValueError: There is no such drone, or it is not fitted to this model.
    """
    figures = load_drone(drone)
    so_rpy, own = (_table(drone, name, f"dynamics {model!r}") for name in ("so_rpy", model))
    fitted = {name: np.atleast_1d(value) for name, value in (so_rpy | own).items()}
    names = ["thrust_min", "thrust_max"] + ["drag_matrix"] * (model == "so_rpy_rotor_drag")
    return fitted | {name: figures[name] for name in names}


def load_mellinger(drone: AnyDrone, stage: str) -> dict[str, Any]:
    """Read the figures of the Mellinger controller of a drone.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.
        stage: `state`, `attitude` or `force_torque`; its gains are among the figures.

    Raises:
        ValueError: There is no such drone, or its file has no figures of the controller.
    """
    shared, own = common()["mellinger"], _table(drone, "mellinger", "its controllers")
    return shared | shared.get(stage, {}) | own | own.get(stage, {})


def has_controller(drone: AnyDrone, controller: str) -> bool:
    """Return whether a drone has its own figures for a controller.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.
        controller: Name of the table.

    Raises:
        ValueError: There is no such drone, or its file has an impossible figure.
    """
    return controller in _tables(folder_of(drone))


def load_controller(drone: AnyDrone, controller: str, stage: str) -> dict[str, Any]:
    """Read the figures of a controller other than Mellinger's.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.
        controller: Name of the table.
        stage: `state` or `attitude`.

    Raises:
        ValueError: There is no such drone, or its file has an impossible figure.
    """
    own = _tables(folder_of(drone)).get(controller, {}).get(stage, {})
    return deepcopy(common()[controller][stage] | own)


def has_battery(drone: AnyDrone) -> bool:
    """Return whether the battery of a drone is known.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.

    Raises:
        ValueError: There is no such drone, or its file has an impossible figure.
    """
    return "battery" in _tables(folder_of(drone))


def load_battery(drone: AnyDrone) -> dict[str, Any]:
    """Read the figures of the battery of a drone: arguments of `sim.Battery`.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.

    Raises:
        ValueError: There is no such drone, or its battery is not known.
    """
    figures = _table(drone, "battery", "battery=true")
    return {k: tuple(v.tolist()) if isinstance(v, np.ndarray) else v for k, v in figures.items()}


def drawing_of(drone: AnyDrone) -> tuple[Path, dict[str, Any]]:
    """Return a drone's MJCF file, and by name the figures that replace the placeholders in it.

    Raises:
        ValueError: There is no such drone, or no such file.
    """
    folder = folder_of(drone)
    tables = _tables(folder)
    figures = {"L": tables["L"], **tables["geometry"], **tables["drawing"]}
    file = figures.pop("file", "drawing.xml")
    for path in (folder / file, BUILT_IN / file):
        if path.is_file():
            return path, figures
    raise ValueError(f"{folder / FIGURES}: there is no drawing {folder / file}")


def _table(drone: AnyDrone, name: str, needed_by: str) -> dict[str, Any]:
    folder = folder_of(drone)
    try:
        return deepcopy(_tables(folder)[name])
    except KeyError:
        file = folder / FIGURES
        raise ValueError(f"{file} has no table [{name}], which {needed_by} needs") from None


@cache
def _tables(folder: Path) -> dict[str, Any]:
    """Return all figures of the drone in a folder, checked; the file is read once."""
    return read_tables(folder / FIGURES, checked)


def read_tables(file: Path, check: Callable[[dict[str, Any]], T]) -> T:
    """Return what a function makes of the tables in a file of a drone.

    Raises:
        ValueError: The file cannot be read or is no TOML, or the function refuses the tables; the
            message names the file.
    """
    try:
        return check(tomllib.loads(read_text(file, _MOST_BYTES)))
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise ValueError(f"{file} is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
