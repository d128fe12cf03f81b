"""A drone's folder with identified parameters."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.figures import has_battery, load_mellinger
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.drones.uncertainty import (
    FITS,
    UNCERTAINTY,
    load_uncertainty,
    most_deviations,
    with_deviations,
)
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.identification.fit import Fit

RIGID_BODY = "rigid_body"
"""Name of the fit of `first_principles` among fits."""
_OF_THRUST = (
    "thrust_min",
    "thrust_max",
    "idle_thrust",
    "rpm2thrust",
    "rpm2torque",
    "voltage2thrust",
)
_ABOUT = """\
# Covariances of the logarithms of the figures' numbers, and of thrust_offset itself [m^2], by which
# `randomize_identified` of crazyflow_ros.sim draws drones."""
_FITTED = tuple(str(model) for model in Dynamics if not model.has_rotors)
_UNITS = {
    "rpy_coef": "1/s^2",
    "rpy_rates_coef": "1/s",
    "cmd_rpy_coef": "1/s^2",
    "cmd_f_coef": "thrust over commanded thrust",
    "thrust_dyn_coef": "1/s",
}


def write_drone(
    folder: str | Path,
    drone: str,
    fits: Mapping[str, Fit],
    mass: float | None = None,
    source: str = "",
) -> Path:
    """Write the folder of a drone that flies with identified models.

    All other figures, and the drawing, are those of a known drone. The identified drag is that of
    all its models. Without a fit of the `so_rpy` models, it has none of them.

    Args:
        folder: Path of the folder, which must not exist.
        drone: Name of the known drone, or path of its folder.
        fits: Results of `identify`, that of `identify_rigid_body` as `rigid_body`, or both.
        mass: kg; by default that of the known drone.
        source: Names of the flights and the date, for the file's first line.

    Returns:
        The absolute path; `str` of it is for `Sim(drone=...)`.

    Raises:
        FileExistsError: The folder exists.
        OSError: It cannot be written.
        ValueError: There is no such drone, or it cannot fly with what was identified.
    """
    known, target, lines = folder_of(drone), Path(folder).resolve(), dict[str, str]()
    text = _without_fits((known / FIGURES).read_text())
    if mass is not None:
        lines["mass"] = _line("mass", mass, "kg")
    rigid_body, fitted = fits.get(RIGID_BODY), Dynamics.so_rpy_rotor_drag in fits
    if fitted:
        drag = fits[Dynamics.so_rpy_rotor_drag].values
        numbers = [*drag["drag_xy"], *drag["drag_xy"], *drag["drag_z"]]
        lines["drag"] = _line("drag", numbers, "N/(m/s)")
    if rigid_body is not None:
        lines |= rigid_body_lines(load_drone(drone), rigid_body)
    text = with_lines(text, lines)
    if rigid_body is not None and "voltage" in rigid_body.values:
        text = _with_commands(text, drone, rigid_body)
    tables = "\n".join(_tables(fits)) if fitted else ""
    text = f"{_head(drone, source)}{text.rstrip()}\n\n{tables}"
    tomllib.loads(text)
    target.mkdir(parents=True)
    try:
        for file in known.iterdir():
            if file.is_file() and file.name not in (FIGURES, UNCERTAINTY):
                write_file(target / file.name, file.read_bytes())
        write_file(target / FIGURES, text.encode())
        load_drone(target)
        if parts := [*_uncertainties(fits)]:
            text = "\n".join([f"# How certain {FIGURES} is{_origin(source)}.", _ABOUT, *parts])
            write_file(target / UNCERTAINTY, f"{text}\n".encode())
            load_uncertainty(target)
    except BaseException:  # what is refused, or not whole, should not be there
        rmtree(target)
        raise
    return target


def _head(drone: str, source: str) -> str:
    return (
        f"# Identified{_origin(source)}.\n# Known drone: {Path(drone).name}. "
        "Numbers after ± are two standard deviations (95 %).\n\n"
    )


def _origin(source: str) -> str:
    return f", from {source}" if source else ""


def rigid_body_lines(known: Mapping[str, Any], fit: Fit) -> dict[str, str]:
    """Return lines of `drone.toml` by figure.

    Args:
        known: `load_drone(...)` of the known drone.
        fit: Result of `identify_rigid_body`.
    """
    values, k = fit.values, float(fit.values["thrust"][0])

    def said(name: str, unit: str) -> str:
        spread = 2 * fit.deviations[name]
        shown = ", ".join("as known" if np.isnan(x) else f"± {x:.2g}" for x in spread)
        return f"{unit}; {shown}"

    drag = [*values["drag_xy"], *values["drag_xy"], *values["drag_z"]]
    spreads = [2 * fit.deviations[name][0] for name in ("drag_xy", "drag_z")]
    spread = ", ".join("as known" if np.isnan(x) else f"± {x:.2g}" for x in spreads)
    lines = {
        "J": _line("J", values["J"], said("J", "kg m^2")),
        "drag": _line("drag", -np.array(drag), f"N/(m/s); {spread} (x and y, z)"),
    }
    scale = f"{k:.4f} ± {2 * fit.deviations['thrust'][0]:.2g} of the known drone's"
    for name in _OF_THRUST:
        if name in known:
            lines[name] = _line(name, k * np.asarray(known[name]), scale)
    for name, unit in (("rotor_moment", "N m/(m/s)"), ("thrust_offset", "m")):
        lines[name] = _line(name, values[name], said(name, unit))
    if "motor_lag" in values:
        rate = 1 / float(values["motor_lag"][0])
        spread = 2e3 * fit.deviations["motor_lag"][0]
        lag = f"1/s; a lag of {1e3 / rate:.1f} ± {spread:.2g} ms"
        lines["rotor_dyn_coef"] = _line("rotor_dyn_coef", [rate, 0.0, rate, 0.0], lag)
    return lines


def with_lines(text: str, lines: Mapping[str, str], table: str = "") -> str:
    """Return the text of a TOML file with lines of figures replaced, or added.

    Args:
        text: Of the file.
        lines: By the names of figures.
        table: Name of their table; those before the first table have none.
    """
    parts = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    at = next((i for i, part in enumerate(parts) if part.startswith(f"[{table}]")), None)
    if at is None:
        if table:
            return text + "".join(f"{line}\n" for line in (f"\n[{table}]", *lines.values()))
        at = 0
    for name, line in lines.items():
        pattern = re.compile(rf"^{re.escape(name)} *=.*$", re.MULTILINE)
        parts[at], count = pattern.subn(lambda _, line=line: line, parts[at], count=1)
        if not count:
            parts[at] = f"{parts[at].rstrip()}\n{line}\n\n"
    return "".join(parts)


def _with_commands(text: str, drone: str, fit: Fit) -> str:
    """Return figures with what the firmware's commands mean for the drone.

    The firmware turns commands into duty cycles by the known drone's curve, and stops at a duty
    cycle of 1: so rotors give more than what it takes for the greatest thrust, where the battery
    allows it (motors.c and power_distribution_quadrotor.c of the Crazyflie's firmware).
    """
    known, volts, k = load_drone(drone), float(fit.values["voltage"][0]), fit.values["thrust"][0]
    most = float(polyval(volts, known["voltage2thrust"]))
    at = f"at {volts:.2f} V, the flights' mean"
    text = with_lines(text, {"thrust_max": _line("thrust_max", k * most, f"N, one rotor, {at}")})
    command = load_mellinger(drone, "force_torque")["pwm_max"] * most / known["thrust_max"]
    line = _line("pwm_max", command, f"the firmware's command for thrust_max, {at}")
    text = with_lines(text, {"pwm_max": line}, "mellinger")
    if has_battery(drone):
        line = _line("full_speed", volts, "V, at which thrust_max was taken")
        text = with_lines(text, {"full_speed": line}, "battery")
    return text


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


def _line(name: str, value: ArrayLike, unit: str) -> str:
    numbers = np.asarray(value, float).tolist()
    return f"{name} = {numbers}  # {unit}"


def _uncertainties(fits: Mapping[str, Fit]) -> Iterable[str]:
    """Return the tables of the fits' uncertainty."""
    for kind, fit in fits.items():
        if fit.covariance is None:
            continue
        names = [name for name, value in fit.values.items() for _ in value]
        rows = np.flatnonzero(np.isin(names, [*FITS[kind]]))
        figures = [name for name in fit.values if name in FITS[kind]]
        matrix = fit.covariance[np.ix_(rows, rows)]
        allowed = np.minimum(np.sqrt(np.diag(matrix)), most_deviations(kind, figures))
        lines = (f"    {row}," for row in with_deviations(matrix, allowed).tolist())
        yield "\n".join(
            [
                f"\n[{kind}]",
                f"figures = {json.dumps(figures)}",
                *("covariance = [", *lines, "]"),
            ]
        )
