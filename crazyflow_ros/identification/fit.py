"""Least squares of the fitted models' parameters, with gradients through their equations.

The residuals are differences between recorded and simulated angles and positions (output error;
L. Ljung, "System Identification", 1999, chapter 7). Their derivatives, which are noisier, are not
used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from scipy.optimize import least_squares

from crazyflow_ros.drones import load_drone
from crazyflow_ros.identification.recorded_flight import RecordedFlight
from crazyflow_ros.identification.residuals import (
    ROTATION,
    TRANSLATION,
    WINDOW,
    Residuals,
    rotation_error,
    sign,
    translation_error,
)

_LEAST_SEGMENTS = 5
_MOST_UNCERTAIN = 0.5  # of a parameter, as a part of its value, if all errors were independent
_LEAST_VARIANCE = 1e-24  # of residuals; smaller ones are rounding errors
_RANGE = 6.0  # of the logarithm of a parameter, on both sides of the initial guess
_AT_REST = {  # initial guesses; absolute values
    "rpy_coef": 100.0,
    "rpy_rates_coef": 15.0,
    "cmd_rpy_coef": 100.0,
    "cmd_f_coef": 1.0,
    "thrust_dyn_coef": 10.0,
}
_FALL = 20.0  # m/s, at which the first guess of the drag balances the weight


@dataclass(frozen=True)
class Fit:
    """Identified parameters: of a rigid body, or the rotation or translation of a fitted model."""

    values: dict[str, np.ndarray]
    """Values by name, one for each axis."""
    deviations: dict[str, np.ndarray]
    """Standard deviations of the parameters, see `covariance`; nan of what is not determined."""
    rms: float
    """Root mean square of the residuals, rad, m or N m."""
    covariance: np.ndarray | None = None
    """(k, k) of the logarithms of all values, side by side in the order of `values`, and of the
    values themselves [m^2] of `thrust_offset`, which can change its sign. On its diagonal are the
    squares of `deviations`, for the logarithms relative to the values; what is not determined has
    rows of zeros. None of values that were not fitted."""

    def __str__(self) -> str:
        """Lines of values, with two standard deviations: they hold in 95 % of cases."""
        return "\n".join(
            f"  {name} = " + ", ".join(map(_shown, value, self.deviations[name]))
            for name, value in self.values.items()
        )


def _shown(value: float, deviation: float) -> str:
    return f"{value:.5g} " + ("(as known)" if np.isnan(deviation) else f"± {2 * deviation:.2g}")


def identify(
    flights: Sequence[RecordedFlight], drone: str, mass: float | None = None
) -> dict[str, Fit]:
    """Fit the models to flights.

    Roll and pitch have the same parameters, and `acc_coef` is 0, as in Crazyflow. The commands have
    to change often, all four; for the drag, the drone has to fly some m/s.

    Args:
        flights: Recorded in the air, away from the floor and from obstacles.
        drone: Name of the drone with the mass, or path of its folder.
        mass: kg; by default that of the drone.

    Returns:
        `rotation`, and the translation by the name of each fitted model.

    Raises:
        ValueError: There is no flight or no such drone, or the flights are too short or do not
            determine a parameter; the message names it.
    """
    if not flights:
        raise ValueError("identification needs at least one flight")
    figures = load_drone(drone)
    mass = figures["mass"] if mass is None else mass
    drag = mass * -figures["gravity_vec"][2] / _FALL
    guesses = _AT_REST | {"drag_xy": drag, "drag_z": drag}
    with jax.enable_x64(True):
        return {
            kind: _solve(residuals, guesses, names, size)
            for kind, names, size, residuals in _problems(flights, mass)
        }


def rms_of(
    fits: Mapping[str, Fit],
    flights: Sequence[RecordedFlight],
    drone: str,
    mass: float | None = None,
) -> dict[str, float]:
    """Return the root mean square of the residuals on other flights, by the names of the fits.

    Args:
        fits: Results of `identify`.
        flights: The other flights.
        drone: As for `identify`.
        mass: As for `identify`.
    """
    mass = load_drone(drone)["mass"] if mass is None else mass
    with jax.enable_x64(True):
        found = {}
        for kind, _, _, residuals in _problems(flights, mass):
            theta = np.log(np.abs(np.concatenate([*fits[kind].values.values()])))
            found[kind] = rms(_all(residuals, theta))
    return found


def _problems(
    flights: Sequence[RecordedFlight], mass: float
) -> list[tuple[str, Sequence[str], int, list[Residuals]]]:
    """Return the name of each fit, its parameters, their size and the residuals of each flight."""
    return [
        ("rotation", ROTATION, 2, [rotation_error(flight) for flight in flights]),
        *(
            (str(model), names, 1, [translation_error(model, mass, f) for f in flights])
            for model, names in TRANSLATION.items()
        ),
    ]


def _solve(
    residuals: Sequence[Residuals], guesses: dict[str, float], names: Sequence[str], size: int
) -> Fit:
    slopes = [jax.jacfwd(part) for part in residuals]
    start = np.repeat(np.log([guesses[name] for name in names]), size)
    shapes = [jax.eval_shape(part, start).shape for part in residuals]
    if (n := sum(segments for segments, _ in shapes)) < _LEAST_SEGMENTS:
        raise ValueError(
            f"the flights must have at least {_LEAST_SEGMENTS} segments of {WINDOW:g} s, without "
            f"the first of each, got {n}"
        )
    found = least_squares(
        lambda theta: _all(residuals, theta),
        start,
        lambda theta: _all(slopes, theta).reshape(-1, len(start)),
        bounds=(start - _RANGE, start + _RANGE),
        xtol=1e-10,
        ftol=1e-10,
        gtol=None,
    )
    information = found.jac.T @ found.jac / max(rms(found.fun) ** 2, _LEAST_VARIANCE)
    spread = np.sqrt(np.diag(np.linalg.pinv(information, hermitian=True))).reshape(-1, size)
    slope = np.abs(found.jac).sum(axis=0).reshape(-1, size)  # none, where pinv shows no spread
    for name, row, is_excited in zip(names, spread, (slope > 0).all(axis=1)):
        if not is_excited or not (row < _MOST_UNCERTAIN).all():
            raise ValueError(
                f"the flights do not determine {name}: the commands have to change more, or more "
                "often"
            )
    ends = np.cumsum(np.concatenate([np.full(*shape) for shape in shapes]))[:-1]
    of_logs = covariance(np.split(found.fun, ends), np.split(found.jac, ends))
    spread = np.sqrt(np.diag(of_logs)).reshape(-1, size)
    values = np.exp(found.x).reshape(-1, size)
    return Fit(
        {name: sign(name) * value for name, value in zip(names, values)},
        {name: value * row for name, value, row in zip(names, values, spread)},
        rms(found.fun),
        of_logs,
    )


def covariance(errors: Sequence[np.ndarray], slopes: Sequence[np.ndarray]) -> np.ndarray:
    """Return the covariance (k, k) of the parameters of a least squares fit, by the jackknife.

    It follows from how much the parameters change where a segment of the flights is left out. The
    errors within a segment depend on each other, because noise of the recorded attitude adds up to
    errors of the position. (J. MacKinnon, H. White, "Some heteroskedasticity-consistent covariance
    matrix estimators", 1985, with segments in place of samples.)

    Args:
        errors: Errors of each segment, (n,).
        slopes: Their derivatives with respect to the parameters, (n, k).
    """
    products = [slope.T @ slope for slope in slopes]
    whole, shifts = np.sum(products, axis=0), []
    for error, slope, own in zip(errors, slopes, products):
        shifts.append(np.linalg.pinv(whole - own, hermitian=True) @ slope.T @ error)
    n, rows = len(shifts), np.array(shifts)
    found: np.ndarray = (n - 1) / n * np.sum(rows[:, :, None] * rows[:, None, :], axis=0)
    return found


def _all(functions: Sequence[Residuals], theta: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ravel(function(theta)) for function in functions])  # type: ignore[arg-type]


def rms(errors: np.ndarray) -> float:
    """Return the root of the mean square of numbers."""
    return float(np.sqrt(np.mean(errors**2)))
