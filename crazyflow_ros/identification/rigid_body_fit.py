"""Fit of `first_principles` to flights with rotor speeds, or with duty cycles and voltage.

Forces and torques of the rotors, by the curves of a known drone, are compared with what the
recorded motion needs (equation error; V. Klein, E. Morelli, "Aircraft System Identification", 2006,
chapter 5). Both sides of each equation pass the same filter, so what is too fast to be seen in the
motion is missing on both. Simulated flights would not do: their errors grow with time, so too large
an inertia would hide errors of the torque.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.uncertainty import ADDITIVE, with_deviations
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.flight_logs.motion import motion_of
from crazyflow_ros.identification.equations import (
    RATE,
    Equations,
    LinearTerms,
    chosen,
    segments,
    smoothed,
)
from crazyflow_ros.identification.fit import Fit
from crazyflow_ros.identification.rotor_forces import (
    commanded_speeds,
    lagging,
    rotor_speeds,
)

_LEAST_SEGMENTS = 10
_LAG = 0.05  # s, first guess
_LAGS = (0.005, 0.3)  # s
_NUMERIC = 1e-3  # step of derivatives with respect to the lag [s] and the scale of the thrust
_ITERATIONS = 20
_SETTLED = 1e-5  # s
_LEAST_EXPLAINED = 0.1  # of what a figure acts in, or it is taken from the known drone

UNITS = {
    "thrust": "of the known drone's thrust at the same command",
    "J": "kg m^2",
    "drag_xy": "N/(m/s)",
    "drag_z": "N/(m/s)",
    "rotor_moment": "N m/(m/s)",
    "thrust_offset": "m",
    "motor_lag": "s",
    "voltage": "V, of the battery, mean of the flights",
}
"""What is identified, and its unit."""

_TORQUE = ("J_x", "J_y", "J_z", "moment_y", "moment_x")
_OFFSET = ("offset_x", "offset_y", "offset_z")
_PARTS = {
    "J": _TORQUE[:3],
    "rotor_moment": _TORQUE[3:],
    "thrust_offset": _OFFSET,
    "motor_lag": ("lag",),
}
"""Names of the unknowns that what is identified consists of, where they have other ones."""


@dataclass(frozen=True)
class _Flight:
    """Signals of a flight in the air, (n,) or (n, 3), and columns of equations without rotors."""

    time: np.ndarray
    speeds: np.ndarray
    """(n, 4) RPM, of the rotors, or what the motors are asked for."""
    is_measured: bool
    attitude: Rotation
    ang_vel: np.ndarray
    acc: np.ndarray
    """(segments, m, 3) specific force, body frame; see `_seen`."""
    vel: np.ndarray
    """(segments, m, 3, 2) velocity along x and y, and along z, body frame; see `_seen`."""
    torque: np.ndarray
    """(n, 3, 5) columns of `_TORQUE`, smoothed."""


def identify_rigid_body(logs: Sequence[FlightLog], drone: str, mass: float | None = None) -> Fit:
    """Fit thrust, inertia, drag, moments and lag of a drone that follows `first_principles`.

    Where a flight has measured rotor speeds, flights without them are not used. If none has them,
    duty cycles and voltage tell the thrust, and the lag of the motors is identified, too.

    Args:
        logs: Flights in the air, see `flight_logs.motion.in_the_air`.
        drone: Name or folder of a known drone with the same rotors.
        mass: kg; by default that of the known drone.

    Returns:
        Values by the names in `UNITS`, the offset of the thrust as the mean of all flights;
        `motor_lag` and `voltage` are missing where speeds were measured. What the flights do not
        determine is the known drone's, with a deviation of nan. The residuals are torques, N m.

    Raises:
        ValueError: The flights are too short, or lack what is needed.
    """
    figures = load_drone(drone)
    if mass is not None:
        figures["mass"] = mass
    flights = [_flight(log, figures) for log in logs]
    if any(flight.is_measured for flight in flights):
        flights = [flight for flight in flights if flight.is_measured]
    if (n := sum(segments(len(flight.time)) for flight in flights)) < _LEAST_SEGMENTS:
        raise ValueError(f"the flights must have {_LEAST_SEGMENTS} s in the air, got {n} s")
    lag = None if flights[0].is_measured else _LAG
    unknown = np.append(np.diag(figures["J"]), figures.get("rotor_moment", np.zeros(2)))
    for _ in range(_ITERATIONS):
        solution = _solved(flights, figures, lag, unknown)
        unknown = np.array([solution.turn.values[name] for name in _TORQUE])
        if lag is None or abs(step := solution.turn.values["lag"]) < _SETTLED:
            break
        lag = float(np.clip(lag + step, *_LAGS))
    fit, by_lag = _fit(solution, figures, lag), dict[str, float]()
    if lag is not None:
        later = _solved(flights, figures, lag + _NUMERIC, unknown)
        by_lag = _slopes(solution, later)
        for name, slope in by_lag.items():  # the lag is not known exactly
            spread = slope * fit.deviations["motor_lag"]
            fit.deviations[name] = np.hypot(fit.deviations[name], spread)
        volts = [log.voltage.values for log in logs if log.voltage is not None]
        fit.values["voltage"] = np.array([np.mean(np.concatenate(volts))])
        fit.deviations["voltage"] = np.array([np.std([each.mean() for each in volts])])
    stronger = _solved(flights, figures, lag, unknown, solution.k + _NUMERIC)
    return replace(fit, covariance=_covariance(fit, solution, stronger, by_lag))


def with_fit(params: Params, fit: Fit) -> Params:
    """Return the parameters of a known drone with what was identified.

    Args:
        params: Of the known drone, with the mass for which it was identified.
        fit: Of `identify_rigid_body`.
    """
    values = {name: jnp.asarray(value) for name, value in fit.values.items()}
    k, drag = values["thrust"][0], jnp.concatenate([values["drag_xy"]] * 2 + [values["drag_z"]])
    changes = {
        "rpm2thrust": k * params.rpm2thrust,
        "rpm2torque": k * params.rpm2torque,
        "J": jnp.diag(values["J"]),
        "drag_matrix": -jnp.diag(drag),
        "rotor_moment": values["rotor_moment"],
        "thrust_offset": values["thrust_offset"],
    }
    if "motor_lag" in values:
        rate = 1 / values["motor_lag"][0]
        changes["rotor_dyn_coef"] = jnp.array([[rate, 0, rate, 0]])
    return params.replace(**changes)


def _flight(log: FlightLog, figures: dict[str, Any]) -> _Flight:
    motion = motion_of(log, RATE)
    is_measured = log.rotor_vel is not None
    if is_measured:
        speeds = rotor_speeds(log, motion.time)
    else:
        speeds = commanded_speeds(log, figures, motion.time)
    attitude = Rotation.from_quat(motion.quat)
    vel = attitude.inv().apply(motion.vel)
    acc = np.gradient(motion.vel, 1 / RATE, axis=0) - figures["gravity_vec"]
    x, y, z = motion.ang_vel.T
    ang_acc = np.gradient(motion.ang_vel, 1 / RATE, axis=0)
    torque = np.zeros((len(x), 3, 5))
    torque[:, range(3), range(3)] = ang_acc
    for axis, (a, b, product) in enumerate(((1, 2, y * z), (2, 0, z * x), (0, 1, x * y))):
        torque[:, axis, a], torque[:, axis, b] = -product, product
    torque[:, 0, 3], torque[:, 1, 4] = -vel[:, 1], vel[:, 0]
    seen = [_seen(attitude, vel * axes) for axes in ((1, 1, 0), (0, 0, 1))]
    return _Flight(
        motion.time,
        speeds,
        is_measured,
        attitude,
        motion.ang_vel,
        chosen(attitude.inv().apply(smoothed(acc))),
        chosen(np.stack(seen, axis=-1)),
        smoothed(torque),
    )


def _seen(attitude: Rotation, force: np.ndarray) -> np.ndarray:
    """Return forces (n, 3) in the body frame, smoothed in the world frame, as accelerations are."""
    return attitude.inv().apply(smoothed(attitude.apply(force)))


class _Solution(NamedTuple):
    """Equations at one lag, with k, the scale of the thrust.

    Unknowns are on the side of the recorded motion, which is known far better than what the rotors
    did: so noise of their speeds or commands does not bias anything. This is also why the column of
    the lag is not the derivative of the rotors' torque, but of that which the motion needs
    (instrumental variables; L. Ljung, "System Identification", 1999, section 7.6).
    """

    heave: Equations
    """thrust = 1 / k * mass * acc_z + drag_z / k * vel_z"""
    sway: Equations
    """mass * acc = k * thrust * tilt - drag_xy * vel, of x and y; markers are tilted."""
    turn: Equations
    """k * torque + spin = J * ang_acc + ang_vel x J ang_vel - moment * vel - k * thrust * offset"""

    @property
    def k(self) -> float:
        return 1 / self.heave.values["1/thrust"]


def _solved(
    flights: Sequence[_Flight],
    figures: dict[str, Any],
    lag: float | None,
    unknown: np.ndarray,
    k: float | None = None,
) -> _Solution:
    """Return the solution; with k, `sway` and `turn` are those of rotors of that strength."""
    wrenches = [_wrench(flight, figures, lag) for flight in flights]
    mass, heaves, sways, turns = figures["mass"], [], [], []
    for flight, wrench in zip(flights, wrenches):
        thrust = _seen(flight.attitude, wrench.thrust[:, None] * np.array([0, 0, 1]))
        force, lift = mass * flight.acc[..., 2:], chosen(thrust)[..., 2:]
        common = np.stack([force, flight.vel[..., 2:, 1]], axis=-1)
        heaves.append(LinearTerms(lift, common, np.zeros((*lift.shape, 0))))
    heave = Equations(heaves, ("1/thrust", "drag_z"), ())
    k = 1 / heave.values["1/thrust"] if k is None else k
    for flight, wrench in zip(flights, wrenches):
        tilts = [_seen(flight.attitude, wrench.thrust[:, None] * axis) for axis in np.eye(3)[:2]]
        tilted = k * chosen(np.stack(tilts, axis=-1))[..., :2, :]
        sways.append(LinearTerms(mass * flight.acc[..., :2], -flight.vel[..., :2, :1], tilted))
        common = flight.torque
        if lag is not None:
            change = np.gradient(flight.torque @ unknown, 1 / RATE, axis=0)
            late = lagging(change, lag, 1 / RATE)
            common = np.concatenate([common, late[..., None]], axis=-1)
        offset = -k * chosen(smoothed(wrench.thrust))[..., None, None] * np.eye(3)
        turns.append(LinearTerms(chosen(smoothed(wrench.torque(k))), chosen(common), offset))
    sway = Equations(sways, ("drag_xy",), ("tilt_x", "tilt_y"))
    names = (*_TORQUE, "lag") if lag is not None else _TORQUE
    return _Solution(heave, sway, Equations(turns, names, _OFFSET))


@dataclass(frozen=True)
class _Wrench:
    """Thrust (n,) and torques (n, 3) of the rotors by the known drone's curves."""

    thrust: np.ndarray
    lift: np.ndarray
    """Torque by the curves."""
    spin: np.ndarray
    """Torque by the rotors' angular momentum."""

    def torque(self, k: float) -> np.ndarray:
        """Return the torque of rotors whose curves are k times those of the known drone."""
        return k * self.lift + self.spin


def _wrench(flight: _Flight, figures: dict[str, Any], lag: float | None) -> _Wrench:
    speeds = flight.speeds if lag is None else lagging(flight.speeds, lag, 1 / RATE)
    mixing = figures["mixing_matrix"]
    thrusts, drags = (
        np.polynomial.polynomial.polyval(speeds, figures[curve])
        for curve in ("rpm2thrust", "rpm2torque")
    )
    momentum = speeds @ mixing[2] * figures["prop_inertia"] * RPM
    lift = np.column_stack([thrusts @ (figures["L"] * mixing[:2]).T, drags @ mixing[2]])
    x, y, _ = flight.ang_vel.T
    spin = np.stack([y * momentum, -x * momentum, np.gradient(momentum, 1 / RATE)], axis=1)
    return _Wrench(thrusts.sum(axis=1), lift, spin)


def _slopes(solution: _Solution, later: _Solution) -> dict[str, float]:
    """Return the derivatives of thrust and drag_z with respect to the lag."""
    found = [{"thrust": x.k, "drag_z": x.k * x.heave.values["drag_z"]} for x in (solution, later)]
    return {name: (found[1][name] - found[0][name]) / _NUMERIC for name in found[0]}


def _fit(solution: _Solution, figures: dict[str, Any], lag: float | None) -> Fit:
    inertia, drag = np.diag(figures["J"]), -np.diag(figures["drag_matrix"])
    known = dict(zip(_TORQUE, (*inertia, *figures.get("rotor_moment", np.zeros(2)))))
    known |= {"drag_xy": float(drag[:2].mean()), "drag_z": float(drag[2] / solution.k)}
    values, spreads = dict[str, float](), dict[str, float]()
    for equations in (solution.heave, solution.sway, solution.turn):
        values |= equations.values
        spreads |= equations.spread()
        for name, explained in equations.explained().items():
            if name in known and (explained < _LEAST_EXPLAINED or values[name] <= 0):
                values[name], spreads[name] = known[name], np.nan
    own_spread = solution.turn.own_spread()
    for name, each in solution.turn.own.items():
        values[name] = float(each.mean())
        spreads[name] = float(np.hypot(each.std(), own_spread[name].mean()))
    k = solution.k
    values["thrust"], spreads["thrust"] = k, k * k * spreads["1/thrust"]
    values["drag_z"], spreads["drag_z"] = k * values["drag_z"], k * spreads["drag_z"]
    parts = {name: _PARTS.get(name, (name,)) for name in UNITS if name != "voltage"}
    if lag is None:
        del parts["motor_lag"]
    else:
        values["lag"] = lag
    return Fit(
        {name: np.array([values[part] for part in names]) for name, names in parts.items()},
        {name: np.array([spreads[part] for part in names]) for name, names in parts.items()},
        float(np.sqrt(np.mean(np.square(solution.turn.errors[..., :2])))),
    )


def _covariance(
    fit: Fit, solution: _Solution, stronger: _Solution, by_lag: dict[str, float]
) -> np.ndarray:
    """Return `Fit.covariance`: correlations by the solution, deviations by the fit.

    Args:
        fit: The fit.
        solution: Three systems of equations, whose errors are taken as independent.
        stronger: The solution for a thrust that is larger by `_NUMERIC`.
        by_lag: Result of `_slopes`; empty without a lag.
    """
    k, drag_z = solution.k, solution.heave.values["drag_z"]
    names = [name for equations in solution for name in equations.values]
    alone = [*_OFFSET, "voltage"]  # what depends on nothing else: each flight has its own
    names += alone
    unknowns = block_diag(*(equations.covariance() for equations in solution), np.eye(len(alone)))
    rows = dict(zip(names, np.eye(len(names))))
    thrust = -k * k * rows["1/thrust"]
    rows |= {"thrust": thrust, "drag_z": k * rows["drag_z"] + drag_z * thrust}
    for name, slope in by_lag.items():
        rows[name] = rows[name] + slope * rows["lag"]
    for name in _TORQUE:
        slope = (stronger.turn.values[name] - solution.turn.values[name]) / _NUMERIC
        rows[name] = rows[name] + slope * rows["thrust"]
    mixing = np.array([rows[part] for name in fit.values for part in _PARTS.get(name, (name,))])
    spreads = [
        fit.deviations[name] / (1.0 if name == ADDITIVE else np.abs(value))
        for name, value in fit.values.items()
    ]
    spread = np.nan_to_num(np.concatenate(spreads))
    return with_deviations(mixing @ unknowns @ mixing.T, spread)
