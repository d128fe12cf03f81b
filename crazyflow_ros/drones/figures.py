"""The figures in `drone.toml`, checked, as floats and NumPy arrays.

A drone has all figures in `_DRONE` and `_GEOMETRY`. The tables of the fitted models and of the
controller are optional: without one, the drone cannot fly with the model or controller that needs
it. `cf2x_L250/drone.toml` has the units.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Set
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import Limit, number, read_text, shown, unknown, vector
from crazyflow_ros.drones.folders import BUILT_IN, FIGURES, AnyDrone, folder_of

_MOST_BYTES = 64 * 1024
_DRAWN = 4  # numbers of a figure for the drawing
_LARGEST = Limit(1e6, "")
_TINY = 1e-15
_GRAVITY = 9.81  # m/s^2


class _Figure(NamedTuple):
    """Allowed values of a figure: one number, or `size` of them, of the named sign."""

    size: int | None = None
    sign: str = "finite"


_SIGNS: dict[str, Callable[[Any], Any]] = {
    "finite": np.isfinite,
    "positive": lambda value: value > _TINY,
    "negative": lambda value: value < -_TINY,
    "0 or more": lambda value: value >= 0,
    "0 or less": lambda value: value <= 0,
}
_POSITIVE, _ANY = _Figure(None, "positive"), _Figure()
_DRONE = {
    **dict.fromkeys(("mass", "L", "prop_inertia", "thrust_min", "thrust_max"), _POSITIVE),
    "J": _Figure(3, "positive"),
    "rpm2thrust": _Figure(3),
    "rpm2torque": _Figure(3),
    "rotor_dyn_coef": _Figure(4, "0 or more"),
    "drag": _Figure(3, "0 or less"),
    "idle_thrust": _Figure(None, "0 or more"),
    "rotor_moment": _Figure(2, "0 or more"),
    "thrust_offset": _Figure(3),
    "voltage2thrust": _Figure(4),
}
_OPTIONAL = {"idle_thrust", "rotor_moment", "thrust_offset", "voltage2thrust"}
_GEOMETRY = {
    "rotor_radius": _POSITIVE,
    "rotor_z": _ANY,
    "foot_z": _Figure(None, "negative"),
    "hull_half_width": _POSITIVE,
}
_FIT = {
    "acc_coef": _ANY,
    "cmd_f_coef": _POSITIVE,
    "rpy_coef": _Figure(3, "negative"),
    "rpy_rates_coef": _Figure(3, "negative"),
    "cmd_rpy_coef": _Figure(3, "positive"),
}
_LAG = {"thrust_dyn_coef": _POSITIVE}
_GAINS = _Figure(3, "0 or more")
_MELLINGER = {
    **dict.fromkeys(("mass", "thrust2torque", "mass_thrust", "pwm_max"), _POSITIVE),
    "pwm_min": _Figure(None, "0 or more"),
    "torque_pwm_max": _GAINS,
}
_STAGES = {
    "state": dict.fromkeys(("kp", "kd", "ki", "int_err_max"), _GAINS),
    "attitude": dict.fromkeys(("kR", "kw", "ki_m", "kd_omega", "int_err_max"), _GAINS),
}
_FITTED = {
    "so_rpy": (_FIT, set(_FIT)),
    "so_rpy_rotor": (_FIT | _LAG, set(_LAG)),
    "so_rpy_rotor_drag": (_FIT | _LAG, set(_LAG)),
}
"""Figures of each fitted model, and those that its table has to have; others are so_rpy's."""
_CONTROLLERS: dict[str, dict[str, dict[str, _Figure]]] = {
    "pid": {
        "state": {
            **dict.fromkeys(("kp", "ki", "kd", "kff", "vel_max"), _GAINS),
            **dict.fromkeys(("vel_kp", "vel_ki", "vel_kd", "vel_kff"), _GAINS),
            **dict.fromkeys(("cutoff", "tilt_max"), _POSITIVE),
            **dict.fromkeys(
                ("thrust_base", "thrust_min", "thrust_max"), _Figure(None, "0 or more")
            ),
        },
        "attitude": {
            **dict.fromkeys(("kp", "ki", "kd", "kff", "int_err_max"), _GAINS),
            **dict.fromkeys(("rate_kp", "rate_ki", "rate_kd", "rate_kff"), _GAINS),
            "rate_int_err_max": _GAINS,
            "torque_max": _GAINS,
        },
    },
    "indi": {
        "state": {
            **dict.fromkeys(("kp", "kd"), _GAINS),
            "cutoff": _POSITIVE,
            "tilt_max": _POSITIVE,
        },
        "attitude": {**dict.fromkeys(("kR", "kw", "torque_max"), _GAINS), "cutoff": _POSITIVE},
    },
    "brescianini": {
        "state": {
            **dict.fromkeys(("tau", "zeta"), _Figure(3, "positive")),
            **dict.fromkeys(("thrust_min", "fairness"), _Figure(None, "0 or more")),
            "thrust_max": _POSITIVE,
        },
        "attitude": {
            "tau": _POSITIVE,
            **dict.fromkeys(("rate_tau", "rate_max"), _Figure(3, "positive")),
        },
    },
}
"""Figures of the stages of each other controller; a drone's table has those that differ."""
_BATTERY = {
    **dict.fromkeys(("capacity", "full", "full_speed", "empty", "efficiency"), _POSITIVE),
    **dict.fromkeys(("knee", "nominal"), _Figure(2, "positive")),
    **dict.fromkeys(("resistance", "current"), _Figure(None, "0 or more")),
}
_TABLES = {"geometry", *_FITTED, "mellinger", *_CONTROLLERS, "battery", "drawing"}


def load_drone(drone: AnyDrone) -> dict[str, Any]:
    """Read the figures of one drone.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.

    Returns:
        mass [kg], J (3, 3) [kg m^2], L [m], prop_inertia [kg m^2], thrust_min, thrust_max and
        idle_thrust [N, one rotor], rpm2thrust (3,) [N], rpm2torque (3,) [N m], rotor_dyn_coef (4,),
        drag_matrix (3, 3) [N/(m/s)], mixing_matrix (3, 4), gravity_vec (3,) [m/s^2] and the table
        `geometry` [m] (rotor_radius, rotor_z, foot_z, hull_half_width); if the drone has them,
        rotor_moment (2,) [N m/(m/s)], thrust_offset (3,) [m] and voltage2thrust (4,) [N of one
        rotor, polynomial in V at the motor].

    Raises:
        ValueError: There is no such drone, or its file has an impossible figure; the message names
            both.
    """
    tables, common = _tables(folder_of(drone)), _common()
    figures = {name: tables[name] for name in (*_DRONE, "geometry") if name in tables}
    figures.setdefault("idle_thrust", figures["thrust_min"])
    principal_inertia, drag = figures.pop("J"), figures.pop("drag")
    return deepcopy(figures) | {
        "J": np.diag(principal_inertia),
        "drag_matrix": np.diag(drag),
        "mixing_matrix": np.array(common["mixing_matrix"]),
        "gravity_vec": np.array(common["gravity_vec"]),
    }


def load_model(drone: AnyDrone, model: str) -> dict[str, Any]:
    """Read the figures that a fitted model of a drone needs, besides mass and inertia.

    Args:
        drone: Name of a drone of the package, or path of a drone's folder.
        model: `so_rpy`, `so_rpy_rotor` or `so_rpy_rotor_drag`.

    Returns:
        acc_coef (1,) [N], cmd_f_coef (1,), rpy_coef (3,) [1/s^2], rpy_rates_coef (3,) [1/s],
        cmd_rpy_coef (3,) [1/s^2], thrust_min and thrust_max [N, one rotor]; of the later two models
        thrust_dyn_coef (1,) [1/s], of the last one drag_matrix (3, 3) [N/(m/s)].

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
        stage: `state`, `attitude` or `force_torque`, whose gains are among the figures.

    Raises:
        ValueError: There is no such drone, or its file has no figures of the controller.
    """
    shared, own = _common()["mellinger"], _table(drone, "mellinger", "its controllers")
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
    return deepcopy(_common()[controller][stage] | own)


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
    """Return the MJCF file of a drone, and the figures that are filled in there, by name.

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
def _common() -> dict[str, Any]:
    return tomllib.loads((BUILT_IN / "common.toml").read_text())


@cache
def _tables(folder: Path) -> dict[str, Any]:
    """Return all figures of the drone in a folder, checked; the file is read once."""
    file = folder / FIGURES
    try:
        return _checked(tomllib.loads(read_text(file, _MOST_BYTES)))
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise ValueError(f"{file} is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _checked(tables: dict[str, Any]) -> dict[str, Any]:
    figures = {name: value for name, value in tables.items() if name not in _TABLES}
    found = _figures("", figures, _DRONE, _DRONE.keys() - _OPTIONAL)
    found["geometry"] = _figures("geometry.", tables.get("geometry"), _GEOMETRY, set(_GEOMETRY))
    _check_together(found)
    for model, (known, needed) in _FITTED.items():
        if model in tables:
            found[model] = _figures(f"{model}.", tables[model], known, needed)
    if "mellinger" in tables:
        found["mellinger"] = _mellinger(tables["mellinger"])
    if "battery" in tables:
        found["battery"] = _figures(
            "battery.", tables["battery"], _BATTERY, _BATTERY.keys() - {"current"}
        )
    for controller, stages in _CONTROLLERS.items():
        if controller in tables:
            found[controller] = _staged(controller, tables[controller], stages)
    found["drawing"] = _drawing(tables.get("drawing", {}))
    return found


def _figures(
    prefix: str, table: Any, known: Mapping[str, _Figure], needed: Set[str]
) -> dict[str, Any]:
    """Return the figures of a table; `prefix` is its name and a dot."""
    if table is None:
        raise ValueError(f"the table [{prefix[:-1]}] is missing")
    if not isinstance(table, dict):
        raise ValueError(f"{prefix[:-1]} must be a table, got {shown(table)}")
    for name in table.keys() - known.keys():
        known_names = [prefix + each for each in known]
        raise ValueError(unknown("figure", prefix + name, known_names))
    for name in known:
        if name in needed and name not in table:
            raise ValueError(f"{prefix}{name} is missing")
    return {name: _figure(prefix + name, value, known[name]) for name, value in table.items()}


def _figure(name: str, value: Any, figure: _Figure) -> Any:
    values = value if isinstance(value, list) else [value]
    is_numbers = all(type(item) in (int, float) for item in values)
    if not is_numbers or isinstance(value, list) != (figure.size is not None):
        count = "a number" if figure.size is None else f"{figure.size} numbers"
        raise ValueError(f"{name} must be {count}, got {shown(value)}")
    checked: Any
    if figure.size is None:
        checked = number(name, value, _LARGEST)
    else:
        checked = vector(name, value, (figure.size,), _LARGEST)
    if not np.all(_SIGNS[figure.sign](checked)):
        raise ValueError(f"{name} must be {figure.sign}, got {shown(value)}")
    return checked


def _check_together(figures: Mapping[str, Any]) -> None:
    """Refuse figures that exclude each other."""
    least, most, inertia = figures["thrust_min"], figures["thrust_max"], figures["J"]
    offset, _, square = figures["rpm2thrust"]
    if not least < most:
        raise ValueError(f"thrust_min must be below thrust_max, {most:g} N, got {least:g} N")
    if (idle := figures.get("idle_thrust", 0.0)) > least:
        raise ValueError(f"idle_thrust must be at most thrust_min, {least:g} N, got {idle:g} N")
    if 4 * most <= figures["mass"] * _GRAVITY:
        weight = figures["mass"] * _GRAVITY
        raise ValueError(f"thrust_max must lift the weight of {weight:g} N, got 4 x {most:g} N")
    if square <= 0 or offset > least:
        raise ValueError(
            "rpm2thrust must begin at thrust_min at most and end with a positive figure, "
            f"got {shown(figures['rpm2thrust'])}"
        )
    if not all(figures["rotor_dyn_coef"].reshape(2, 2).any(axis=1)):
        coefficients = shown(figures["rotor_dyn_coef"])
        raise ValueError(
            f"rotor_dyn_coef must let rotors speed up and slow down, got {coefficients}"
        )
    if 2 * inertia.max() > inertia.sum() * (1 + 1e-9):
        raise ValueError(f"J must be that of a body, a + b >= c, got {shown(inertia)}")


def _mellinger(table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"mellinger must be a table, got {shown(table)}")
    stages = {stage: table.pop(stage) for stage in _STAGES if stage in table}
    found = _figures("mellinger.", table, _MELLINGER, {"mass", "thrust2torque"})
    found |= _staged("mellinger", stages, _STAGES)
    least, most = ({**_common()["mellinger"], **found}[name] for name in ("pwm_min", "pwm_max"))
    if not least < most:
        raise ValueError(f"mellinger.pwm_min must be below pwm_max, {most:g}, got {least:g}")
    return found


def _staged(
    controller: str, table: Any, stages: Mapping[str, Mapping[str, _Figure]]
) -> dict[str, Any]:
    """Return the figures of a controller that differ from those that all drones share."""
    if not isinstance(table, dict):
        raise ValueError(f"{controller} must be a table, got {shown(table)}")
    for stage in table.keys() - stages.keys():
        known = [f"{controller}.{stage}" for stage in stages]
        raise ValueError(unknown("table of figures", f"{controller}.{stage}", known))
    return {
        stage: _figures(f"{controller}.{stage}.", figures, stages[stage], set())
        for stage, figures in table.items()
    }


def _drawing(table: Any) -> dict[str, Any]:
    """Return the name of the file, if there is one, and figures of any names."""
    if not isinstance(table, dict):
        raise ValueError(f"drawing must be a table, got {shown(table)}")
    file = table.pop("file", "drawing.xml")
    if not isinstance(file, str) or Path(file).name != file or "\0" in file:
        raise ValueError(f"drawing.file must be the name of a file, got {shown(file)}")
    for name, value in table.items():
        if isinstance(value, list) and len(value) > _DRAWN:
            raise ValueError(f"drawing.{name} must be {_DRAWN} numbers at most, got {len(value)}")
    kinds = {k: _Figure(len(v)) if isinstance(v, list) else _Figure() for k, v in table.items()}
    return _figures("drawing.", table, kinds, set()) | {"file": file}
