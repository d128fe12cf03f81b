"""Fit of `first_principles` to flights with rotor speeds, or with duty cycles and voltage.

Forces and torques of the rotors, by the curves of a known drone, are regressed on what the recorded
motion needs (equation error; V. Klein, E. Morelli, "Aircraft System Identification", 2006,
chapter 5). The motion is known far better than the forces. Simulated flights would not do: their
errors grow with time, so too large an inertia would hide errors of the torque.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.signal import butter, sosfiltfilt
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.first_principles import RPM, Params
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.flight_logs.motion import motion_of
from crazyflow_ros.identification.fit import Fit, deviations
from crazyflow_ros.identification.rotor_forces import (
    lagging,
    motor_thrusts,
    rotor_speeds,
    speeds_of,
)

RATE = 200.0  # Hz, of all signals
_BAND = 4.0  # Hz; faster motions are too small to be told from noise
_EVERY = 10  # samples between two that count
_SEGMENT = 20  # samples that count in a second, within which errors depend on each other
_EDGE = 100  # samples at both ends, on which the filter has less to go
_LEAST_SEGMENTS = 10
_LAGS = (0.005, 0.3)  # s
_NUMERIC = 1e-3  # s, step of the derivative with respect to the lag
_LEAST_EXPLAINED = 0.1  # of what a figure acts in, or it is taken from the known drone

UNITS = {
    "thrust": "of the known drone's thrust at the same command",
    "J": "kg m^2",
    "drag_xy": "N/(m/s)",
    "drag_z": "N/(m/s)",
    "rotor_moment": "N m/(m/s)",
    "thrust_offset": "m",
    "motor_lag": "s",
}
"""What is identified, and its unit."""


@dataclass(frozen=True)
class _Flight:
    """Smoothed signals of a flight in the air, (n,) or (n, 3), body frame."""

    speeds: np.ndarray
    """(n, 4) RPM, of the rotors, or what the motors are asked for."""
    is_measured: bool
    acc: np.ndarray
    """Specific force, m/s^2."""
    vel: np.ndarray
    ang_vel: np.ndarray
    ang_acc: np.ndarray


def identify_rigid_body(logs: Sequence[FlightLog], drone: str, mass: float | None = None) -> Fit:
    """Fit thrust, inertia, drag, moments and lag of a drone that follows `first_principles`.

    Where a flight has measured rotor speeds, flights without them are not used. If none has them,
    duty cycles and voltage tell the thrust, and the lag of the motors is identified, too; the
    quantities must then have been logged without delay between them.

    Args:
        logs: Flights in the air, see `flight_logs.motion.in_the_air`.
        drone: Name or folder of a known drone with the same rotors.
        mass: kg; by default that of the known drone.

    Returns:
        Values by the names in `UNITS`, the offset of the thrust as the mean of all flights;
        `motor_lag` is missing where speeds were measured. What the flights do not determine is
        the known drone's, with a deviation of nan. The residuals are torques, N m.

    Raises:
        ValueError: The flights are too short, or lack what is needed.
    """
    figures = load_drone(drone)
    if mass is not None:
        figures["mass"] = mass
    flights = [_flight(log, figures) for log in logs]
    if any(flight.is_measured for flight in flights):
        flights = [flight for flight in flights if flight.is_measured]
    if (n := sum(_segments(len(flight.vel)) for flight in flights)) < _LEAST_SEGMENTS:
        raise ValueError(f"the flights must have {_LEAST_SEGMENTS} s in the air, got {n} s")
    if flights[0].is_measured:
        return _fit(flights, figures, None)
    k = _heave(flights, _wrenches(flights, figures, _LAGS[0]), figures["mass"])[0]
    found = minimize_scalar(
        lambda lag: _rms(_turn(flights, _wrenches(flights, figures, lag), k, figures)),
        bounds=_LAGS,
        options={"xatol": 1e-4},
    )
    return _fit(flights, figures, float(found.x))


def with_fit(params: Params, fit: Fit, mass: float | None = None) -> Params:
    """Return the parameters of a known drone with what was identified.

    Args:
        params: Of the known drone.
        fit: Of `identify_rigid_body`.
        mass: kg, if it is not the known drone's.
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
    if mass is not None:
        changes["mass"] = jnp.array([mass])
    return params.replace(**changes)


def _flight(log: FlightLog, figures: dict[str, Any]) -> _Flight:
    motion = motion_of(log, RATE)
    is_measured = log.rotor_vel is not None
    if is_measured:
        speeds = rotor_speeds(log, motion.time)
    else:
        speeds = speeds_of(motor_thrusts(log, figures, motion.time), figures)
    to_body = Rotation.from_quat(motion.quat).inv()
    acc = np.gradient(motion.vel, 1 / RATE, axis=0) - figures["gravity_vec"]
    ang_acc = np.gradient(motion.ang_vel, 1 / RATE, axis=0)
    return _Flight(
        speeds,
        is_measured,
        to_body.apply(acc),
        to_body.apply(motion.vel),
        motion.ang_vel,
        ang_acc,
    )


def _fit(flights: Sequence[_Flight], figures: dict[str, Any], lag: float | None) -> Fit:
    """Fit all figures but the lag, of which only the uncertainty is found."""
    wrenches = _wrenches(flights, figures, lag)
    k, heave = _heave(flights, wrenches, figures["mass"])
    later = None if lag is None else _wrenches(flights, figures, lag + _NUMERIC)
    turn = _turn(flights, wrenches, k, figures, later)
    sway, yaw = _sway(flights, wrenches, k, figures["mass"]), _yaw(flights, wrenches, k)
    inertia, drag = np.diag(figures["J"]), -np.diag(figures["drag_matrix"])
    moment = figures.get("rotor_moment", np.zeros(2))
    offsets = np.hstack([turn.own, yaw.own])
    spread = np.hstack([turn.own_spread, yaw.own_spread]).mean(axis=0)
    values: dict[str, _Found] = {
        "thrust": ([k], [k * k * heave.spread[0]]),
        "J": _merged(
            turn.found(0, inertia[0]), turn.found(1, inertia[1]), yaw.found(0, inertia[2])
        ),
        "drag_xy": sway.found(0, drag[:2].mean()),
        "drag_z": heave.found(1, drag[2] / k, k),
        "rotor_moment": _merged(turn.found(2, moment[0]), turn.found(3, moment[1])),
        "thrust_offset": (offsets.mean(axis=0), np.hypot(offsets.std(axis=0), spread)),
    }
    if lag is not None:
        values["motor_lag"] = ([lag], [float(turn.spread[4])])
    return Fit(
        {name: np.array(found) for name, (found, _) in values.items()},
        {name: np.array(spread) for name, (_, spread) in values.items()},
        _rms(turn),
    )


_Found = tuple[Any, Any]
"""Values and their standard deviations; nan for what is the known drone's."""


def _merged(*found: _Found) -> _Found:
    return [value[0] for value, _ in found], [spread[0] for _, spread in found]


def _rms(equations: _Equations) -> float:
    return float(np.sqrt(np.mean(np.square(equations.errors))))


def _wrenches(
    flights: Sequence[_Flight], figures: dict[str, Any], lag: float | None
) -> list[_Wrench]:
    return [_Wrench.of(flight, figures, lag) for flight in flights]


def _heave(
    flights: Sequence[_Flight], wrenches: Sequence[_Wrench], mass: float
) -> tuple[float, _Equations]:
    """Return k and the equations thrust = 1 / k * mass * acc_z + drag_z / k * vel_z."""
    equations = _Equations(len(flights))
    for i, (flight, wrench) in enumerate(zip(flights, wrenches)):
        equations.add(i, wrench.thrust, [mass * flight.acc[:, 2], flight.vel[:, 2]])
    return 1 / float(equations.solve()[0]), equations


def _sway(
    flights: Sequence[_Flight], wrenches: Sequence[_Wrench], k: float, mass: float
) -> _Equations:
    """Return the equations mass * acc = k * thrust * tilt - drag_xy * vel, of x and y.

    The markers of each flight are tilted in another way.
    """
    equations = _Equations(len(flights), 2)
    for i, (flight, wrench) in enumerate(zip(flights, wrenches)):
        for axis in range(2):
            tilt = [k * wrench.thrust * (axis == each) for each in range(2)]
            equations.add(i, mass * flight.acc[:, axis], [-flight.vel[:, axis]], tilt)
    equations.solve()
    return equations


def _turn(
    flights: Sequence[_Flight],
    wrenches: Sequence[_Wrench],
    k: float,
    figures: dict[str, Any],
    later: Sequence[_Wrench] | None = None,
) -> _Equations:
    """Return the equations of roll and pitch, with those of the lag if `later` is given.

    k * torque = J * ang_acc + spin - moment * vel - offset * k * thrust, of each axis
    """
    equations = _Equations(len(flights), 2)
    for i, (flight, wrench) in enumerate(zip(flights, wrenches)):
        spin = np.cross(flight.ang_vel, flight.ang_vel * np.diag(figures["J"]))
        spin[:, 0] -= flight.ang_vel[:, 1] * wrench.momentum
        spin[:, 1] += flight.ang_vel[:, 0] * wrench.momentum
        for axis, speed in enumerate((flight.vel[:, 1], -flight.vel[:, 0])):
            needed = [np.zeros(len(spin)) for _ in range(4)]
            needed[axis], needed[2 + axis] = flight.ang_acc[:, axis], -speed
            if later is not None:  # with a longer lag, the rotors would give another torque
                change = later[i].torque[:, axis] - wrench.torque[:, axis]
                needed.append(-k * change / _NUMERIC)
            offset = [-k * wrench.thrust * (axis == each) for each in range(2)]
            equations.add(i, k * wrench.torque[:, axis] - spin[:, axis], needed, offset)
    equations.solve()
    return equations


def _yaw(flights: Sequence[_Flight], wrenches: Sequence[_Wrench], k: float) -> _Equations:
    """Return the equations k * drag + reaction = J * ang_acc - offset * k * thrust of z.

    A rotor with less thrust has less drag.
    """
    equations = _Equations(len(flights), 1)
    for i, (flight, wrench) in enumerate(zip(flights, wrenches)):
        torque = k * wrench.drag + wrench.reaction
        equations.add(i, torque, [flight.ang_acc[:, 2]], [-k * wrench.thrust])
    equations.solve()
    return equations


@dataclass(frozen=True)
class _Wrench:
    """Forces and torques of the rotors by the known drone's curves, (n,) or (n, 2), smoothed."""

    thrust: np.ndarray
    torque: np.ndarray
    drag: np.ndarray
    """Yaw torque of the propellers' drag."""
    reaction: np.ndarray
    momentum: np.ndarray
    """Minus the angular momentum of all rotors, N m s."""

    @classmethod
    def of(cls, flight: _Flight, figures: dict[str, Any], lag: float | None) -> _Wrench:
        speeds = flight.speeds if lag is None else lagging(flight.speeds, lag, 1 / RATE)
        mixing = figures["mixing_matrix"]
        thrusts, drags = (
            np.polynomial.polynomial.polyval(speeds, figures[curve])
            for curve in ("rpm2thrust", "rpm2torque")
        )
        spin = speeds @ mixing[2] * figures["prop_inertia"] * RPM
        return cls(
            thrusts.sum(axis=1),
            thrusts @ (figures["L"] * mixing[:2]).T,
            drags @ mixing[2],
            np.gradient(spin, 1 / RATE),
            spin,
        )


def _segments(samples: int) -> int:
    return max(0, samples - 2 * _EDGE) // (_EVERY * _SEGMENT)


class _Equations:
    """Linear equations of several flights, by least squares.

    Some unknowns are common to all flights, and `own` ones, (flights, k), belong to one flight.
    """

    def __init__(self, flights: int, own: int = 0) -> None:
        self._flights, self._k, self._common = flights, own, 0
        self._rows = list[np.ndarray]()
        self._all = self.errors = np.zeros(0)

    def add(
        self,
        flight: int,
        response: np.ndarray,
        common: Sequence[np.ndarray],
        own: Sequence[np.ndarray] = (),
    ) -> None:
        """Add the equations of a flight: response = sum of unknowns times columns, each (n,)."""
        columns = np.stack([response, *common, *own], axis=1)
        smooth = sosfiltfilt(butter(4, _BAND, fs=RATE, output="sos"), columns, axis=0)
        n = _segments(len(columns)) * _SEGMENT
        chosen = smooth[_EDGE::_EVERY][:n]
        self._common, split = len(common), 1 + len(common)
        row = np.zeros((n, split + self._k * self._flights))
        row[:, :split] = chosen[:, :split]
        row[:, split + self._k * flight :][:, : self._k] = chosen[:, split:]
        self._rows.extend(row.reshape(-1, _SEGMENT, row.shape[1]))

    def solve(self) -> np.ndarray:
        """Return the common unknowns."""
        table = np.concatenate(self._rows)
        self._all, *_ = np.linalg.lstsq(table[:, 1:], table[:, 0], rcond=None)
        self.errors = table[:, 0] - table[:, 1:] @ self._all
        return self._all[: self._common]

    @property
    def own(self) -> np.ndarray:
        """(flights, k) unknowns of each flight."""
        return self._all[self._common :].reshape(self._flights, self._k)

    @cached_property
    def _spread(self) -> np.ndarray:
        errors = np.split(self.errors, len(self._rows))
        return deviations(errors, [row[:, 1:] for row in self._rows])

    @property
    def spread(self) -> np.ndarray:
        """Standard deviations of the common unknowns."""
        return self._spread[: self._common]

    @property
    def own_spread(self) -> np.ndarray:
        """(flights, k) standard deviations."""
        return self._spread[self._common :].reshape(self._flights, self._k)

    @cached_property
    def _explained(self) -> np.ndarray:
        """Share of the errors without a column that it removes (partial R squared)."""
        columns = np.concatenate(self._rows)[:, 1:]
        inverse = np.diag(np.linalg.pinv(columns.T @ columns, hermitian=True))
        more = np.divide(self._all**2, inverse, out=np.zeros_like(inverse), where=inverse > 0)
        total: np.ndarray = more + self.errors @ self.errors
        return np.divide(more, total, out=np.zeros_like(total), where=total > 0)

    def found(self, index: int, known: float, factor: float = 1.0) -> _Found:
        """Return a common unknown; the known value if the flights say too little about it."""
        value = float(self._all[index])
        if self._explained[index] < _LEAST_EXPLAINED or value <= 0:
            return [factor * known], [np.nan]
        return [factor * value], [factor * float(self._spread[index])]
