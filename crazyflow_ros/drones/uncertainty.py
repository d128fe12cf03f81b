"""How certain the figures of an identified drone are: `uncertainty.toml` in its folder.

Each table is named after a fit, of which fits are independent. `figures` names what was identified,
and `covariance` is that of the logarithms of their numbers, side by side: their deviations are
relative to the figure. The numbers of `ADDITIVE` can change their sign; theirs is the covariance of
the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks.limits import Limit, shown, unknown, vector
from crazyflow_ros.drones.figures import read_tables
from crazyflow_ros.drones.folders import AnyDrone, folder_of

UNCERTAINTY = "uncertainty.toml"
"""File of a drone's folder with the uncertainty of its figures."""
ADDITIVE = "thrust_offset"
"""The figure whose numbers can change their sign."""

_LAG = {"cmd_f_coef": 1, "thrust_dyn_coef": 1}
FITS = {
    "rigid_body": {
        "thrust": 1,
        "J": 3,
        "drag_xy": 1,
        "drag_z": 1,
        "rotor_moment": 2,
        "thrust_offset": 3,
        "motor_lag": 1,
    },
    "rotation": {"rpy_coef": 2, "rpy_rates_coef": 2, "cmd_rpy_coef": 2},
    "so_rpy": {"cmd_f_coef": 1},
    "so_rpy_rotor": _LAG,
    "so_rpy_rotor_drag": {**_LAG, "drag_xy": 1, "drag_z": 1},
}
"""Figures of each fit, and how many numbers they have; see docs/guides/identification.md."""

_MOST_RELATIVE = 0.5  # beyond which a drone would have little to do with the one that flew
_MOST_OFFSET = 0.05  # m
_KEYS = ("figures", "covariance")
_ROUNDING = 1e-6  # of correlations


class Uncertainty(NamedTuple):
    """The uncertainty of a fit."""

    figures: tuple[str, ...]
    covariance: np.ndarray
    """(k, k) of the logarithms of the figures' numbers, or of the numbers of `ADDITIVE`."""

    def root(self) -> np.ndarray:
        """Return a matrix (k, k) that makes such numbers of k independent standard normal ones."""
        matrix, spread = _correlations(self.covariance)
        variances, axes = np.linalg.eigh(matrix)
        root: np.ndarray = spread[:, None] * axes * np.sqrt(np.maximum(variances, 0.0))
        return root


def most_deviations(fit: str, figures: Iterable[str]) -> np.ndarray:
    """Return the largest allowed standard deviation (k,) of the numbers of a fit's figures."""
    sizes = FITS[fit]
    most = {ADDITIVE: _MOST_OFFSET}
    return np.concatenate([[most.get(name, _MOST_RELATIVE)] * sizes[name] for name in figures])


def with_deviations(covariance: np.ndarray, deviations: ArrayLike) -> np.ndarray:
    """Return the covariance (k, k) with the same correlations, and other deviations (k,)."""
    scaled: np.ndarray = _correlations(covariance)[0] * np.multiply.outer(deviations, deviations)
    return scaled


def load_uncertainty(drone: AnyDrone) -> dict[str, Uncertainty]:
    """Read how certain the figures of an identified drone are, by the names of the fits.

    Args:
        drone: Path of the drone's folder, which `identify` has written.

    Raises:
        ValueError: There is no such drone, its folder has no `uncertainty.toml`, or something in it
            is impossible; the message names the file and what was expected.
    """
    file = folder_of(drone) / UNCERTAINTY
    if not file.is_file():
        raise ValueError(f"there is no file {file}, which `identify` writes for a drone that flew")
    return read_tables(file, _checked)


def _checked(tables: dict[str, Any]) -> dict[str, Uncertainty]:
    if not tables:
        raise ValueError(f"there must be a table of {', '.join(FITS)}, got none")
    for name in tables.keys() - FITS.keys():
        raise ValueError(unknown("fit", name, FITS))
    return {name: _uncertainty(name, table) for name, table in tables.items()}


def _uncertainty(fit: str, table: Any) -> Uncertainty:
    if not isinstance(table, dict) or table.keys() != set(_KEYS):
        raise ValueError(f"{fit} must be a table of {' and '.join(_KEYS)}, got {shown(table)}")
    figures, rows = (table[key] for key in _KEYS)
    known = FITS[fit]
    if not isinstance(figures, list) or not all(isinstance(name, str) for name in figures):
        raise ValueError(f"{fit}.figures must be a list of names, got {shown(figures)}")
    for name in figures:
        if name not in known:
            raise ValueError(unknown(f"figure of {fit}", name, known))
    if not figures or len(figures) != len(set(figures)):
        raise ValueError(f"{fit}.figures must have each name once, got {shown(figures)}")
    what, most = f"{fit}.covariance", most_deviations(fit, figures)
    k = len(most)
    is_numbers = isinstance(rows, list) and all(
        isinstance(row, list) and all(type(item) in (int, float) for item in row) for row in rows
    )
    if not is_numbers:
        raise ValueError(f"{what} must be {k} x {k} numbers, got {shown(rows)}")
    matrix = vector(what, rows, (k, k), Limit(1.0, ""))
    for i, variance in enumerate(np.diag(matrix)):
        if not 0 <= variance <= most[i] ** 2 * (1 + _ROUNDING):
            raise ValueError(
                f"{what}[{i}][{i}] must be from 0 to {most[i] ** 2:g}, got {variance:g}"
            )
    found, spread = _correlations(matrix)
    lost = (np.multiply.outer(spread, spread) == 0) & (matrix != 0)
    if lost.any() or np.abs(found).max() > 1 + _ROUNDING:
        raise ValueError(f"{what} must have correlations from -1 to 1, got {shown(rows)}")
    if np.abs(found - found.T).max() > _ROUNDING:
        raise ValueError(f"{what} must be symmetric, got {shown(rows)}")
    if (least := np.linalg.eigvalsh(found).min()) < -_ROUNDING * k:
        raise ValueError(
            f"{what} must be positive semi-definite, but its correlations have the eigenvalue "
            f"{least:g}"
        )
    return Uncertainty(tuple(figures), (matrix + matrix.T) / 2)


def _correlations(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return correlations (k, k), which are 0 without a variance, and standard deviations (k,)."""
    spread = np.sqrt(np.diag(covariance))
    size = np.multiply.outer(spread, spread)
    with np.errstate(over="ignore"):
        found = np.divide(covariance, size, out=np.eye(len(spread)), where=size > 0)
    return found, spread
