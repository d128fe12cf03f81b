"""Allowed figures in `drone.toml`.

A drone needs all figures in `_DRONE` and `_GEOMETRY` that are not in `_OPTIONAL`, and either `L` or
tables `[[rotor]]`, see `rotors`. The tables of fitted models and controllers are optional: without
one, the drone cannot fly with the model or controller that needs it. `cf2x_L250/drone.toml` has the
units.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import Limit, number, shown, unknown, vector
from crazyflow_ros.drones.folders import BUILT_IN
from crazyflow_ros.drones.rotors import MOST, QUADROTOR, Rotors, of_table, quadrotor, tabled

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
NAMES = tuple(_DRONE)
"""Figures of a drone outside tables."""
_OPTIONAL = {"idle_thrust", "rotor_moment", "thrust_offset", "voltage2thrust"}
_GEOMETRY = {
    "rotor_radius": _POSITIVE,
    "rotor_z": _ANY,
    "foot_z": _Figure(None, "negative"),
    "hull_half_width": _POSITIVE,
}
_ROTOR = {
    "position": _Figure(3),
    "spin": _ANY,
    "axis": _Figure(3),
    **{name: _DRONE[name] for name in ("rpm2thrust", "rpm2torque", "rotor_dyn_coef")},
    "prop_inertia": _POSITIVE,
}
"""Figures of one rotor; those that it lacks are the drone's."""
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
"""Figures of each fitted model, and those that its own table must have; so_rpy's has the others."""
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
"""Figures of the other controllers by stage; a drone's table has those that differ."""
_BATTERY = {
    **dict.fromkeys(("capacity", "full", "full_speed", "empty", "efficiency"), _POSITIVE),
    **dict.fromkeys(("knee", "nominal"), _Figure(2, "positive")),
    **dict.fromkeys(("resistance", "current"), _Figure(None, "0 or more")),
}
_TABLES = {"geometry", "rotor", *_FITTED, "mellinger", *_CONTROLLERS, "battery", "drawing"}


@cache
def common() -> dict[str, Any]:
    """Return the figures that all drones share."""
    return tomllib.loads((BUILT_IN / "common.toml").read_text())


def checked(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a drone, checked, as floats and NumPy arrays.

    Raises:
        ValueError: A figure is missing, unknown or impossible; the message names it.
    """
    figures = {name: value for name, value in tables.items() if name not in _TABLES}
    has_tables = "rotor" in tables
    if has_tables and "L" in figures:
        raise ValueError("L is the figure of a quadrotor without tables [[rotor]]; remove one")
    needed = _DRONE.keys() - _OPTIONAL - ({"L"} if has_tables else set())
    found = _figures("", figures, _DRONE, needed)
    found["geometry"] = _figures("geometry.", tables.get("geometry"), _GEOMETRY, set(_GEOMETRY))
    _check_together(found)
    found["rotors"] = rotors = _rotors(found, tables.get("rotor"))
    if has_tables:
        found |= rotors.as_quadrotor()
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
    """Refuse figures that contradict each other."""
    least, most, inertia = figures["thrust_min"], figures["thrust_max"], figures["J"]
    if not least < most:
        raise ValueError(f"thrust_min must be below thrust_max, {most:g} N, got {least:g} N")
    if (idle := figures.get("idle_thrust", 0.0)) > least:
        raise ValueError(f"idle_thrust must be at most thrust_min, {least:g} N, got {idle:g} N")
    _check_curves("", figures, least)
    if 2 * inertia.max() > inertia.sum() * (1 + 1e-9):
        raise ValueError(f"J must be that of a rigid body, a + b >= c, got {shown(inertia)}")


def _check_curves(prefix: str, figures: Mapping[str, Any], least: float) -> None:
    """Refuse curves of a rotor that it cannot have; `least` is the least thrust of all [N]."""
    offset, _, square = curve = figures.get("rpm2thrust", (0.0, 0.0, 1.0))
    if square <= 0 or offset > least:
        raise ValueError(
            f"{prefix}rpm2thrust must begin with at most thrust_min and end with a positive "
            f"number, got {shown(curve)}"
        )
    coefficients = figures.get("rotor_dyn_coef", np.ones(4))
    if not all(coefficients.reshape(2, 2).any(axis=1)):
        raise ValueError(
            f"{prefix}rotor_dyn_coef must let rotors speed up and slow down, "
            f"got {shown(coefficients)}"
        )


def _rotors(figures: Mapping[str, Any], tables: Any) -> Rotors:
    """Return the rotors of a drone; `tables` are those of `[[rotor]]`, or None."""
    if tables is None:
        rotors = quadrotor(figures, np.array(common()["mixing_matrix"]))
    else:
        if not (isinstance(tables, list) and len(tables) in range(QUADROTOR, MOST + 1)):
            count = len(tables) if isinstance(tables, list) else shown(tables)
            raise ValueError(f"there must be {QUADROTOR} to {MOST} tables [[rotor]], got {count}")
        found = []
        for i, table in enumerate(tables):
            own = _figures(f"rotor[{i}].", table, _ROTOR, {"position", "spin"})
            _check_curves(f"rotor[{i}].", own, figures["thrust_min"])
            found.append(of_table(i, own))
        rotors = tabled(figures, found)
    lift, weight = rotors.most_thrust, figures["mass"] * _GRAVITY
    if lift <= weight:
        got = f"{lift:g} N" if tables else f"4 x {figures['thrust_max']:g} N"
        raise ValueError(f"thrust_max must lift the weight of {weight:g} N, got {got}")
    return rotors


def _mellinger(table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"mellinger must be a table, got {shown(table)}")
    stages = {stage: table.pop(stage) for stage in _STAGES if stage in table}
    found = _figures("mellinger.", table, _MELLINGER, {"mass", "thrust2torque"})
    found |= _staged("mellinger", stages, _STAGES)
    least, most = ({**common()["mellinger"], **found}[name] for name in ("pwm_min", "pwm_max"))
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
    """Return the file name and the figures of a drawing; figures may have any names."""
    if not isinstance(table, dict):
        raise ValueError(f"drawing must be a table, got {shown(table)}")
    file = table.pop("file", "drawing.xml")
    if not isinstance(file, str) or Path(file).name != file or "\0" in file:
        raise ValueError(f"drawing.file must be the name of a file, got {shown(file)}")
    for name, value in table.items():
        if isinstance(value, list) and len(value) > _DRAWN:
            raise ValueError(f"drawing.{name} must have at most {_DRAWN} numbers, got {len(value)}")
    kinds = {k: _Figure(len(v)) if isinstance(v, list) else _Figure() for k, v in table.items()}
    return _figures("drawing.", table, kinds, set()) | {"file": file}
