"""Flights from recorded states on, with the recorded speeds of the rotors: the open loop.

A flight is cut into windows. Each begins with the recorded position, attitude and velocities;
from there on only the rotor speeds are those of the recording. Fits are judged by flights that they
were not fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import (
    BodyState,
    add,
    no_wrench,
    rotate_quat,
    scale,
    split,
    stack,
)
from crazyflow_ros.dynamics.first_principles import Params, rotor_acceleration
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.flight_logs.motion import FlightMotion, motion_of
from crazyflow_ros.identification.fit import Fit
from crazyflow_ros.identification.rigid_body_fit import identify_rigid_body, with_fit
from crazyflow_ros.identification.rotor_forces import commanded_speeds, rotor_speeds

RATE = 200.0
"""Steps per second."""
HORIZON = 0.5
"""Length of a window [s]."""
APART = 0.1
"""Time between the beginnings of windows, and between the samples that are compared [s]."""
SHOWN = (0.1, 0.5)
"""Times after which tables show errors [s]."""

_STEPS = round(HORIZON * RATE)
_EVERY = round(APART * RATE)
_SAMPLES = 4000  # of a flight, up to a multiple of which it is padded
_WINDOWS = 100  # the same of windows
_SUBSTEPS = 4  # of a step, for rotors that follow in some hundredths of a second


class Windows(NamedTuple):
    """Windows of a flight: recorded states."""

    first: Array
    """(w,) sample of the motion with which each window begins."""
    start: Array
    """(w, 13) position, quaternion, velocity, rates there."""
    pos: Array
    """(w, h, 3) m, recorded, at each `APART`."""
    quat: Array
    """(w, h, 4)"""


def windows_of(motion: FlightMotion, start: float, end: float) -> Windows:
    """Cut a flight into windows.

    Args:
        motion: Of the flight, at `RATE`.
        start: Earliest beginning [s, clock of the motion].
        end: Latest end.

    Raises:
        ValueError: No window fits in.
    """
    first = np.searchsorted(motion.time, np.arange(start, end - HORIZON, APART))
    first = first[first + _STEPS + 1 < len(motion.time)]
    if not len(first):
        raise ValueError(f"a flight must be {HORIZON:g} s long, got {start:g} to {end:g} s")
    state = np.hstack([motion.pos, motion.quat, motion.vel, motion.ang_vel])
    compared = first[:, None] + np.arange(_EVERY, _STEPS + 1, _EVERY)
    arrays = (first, state[first], motion.pos[compared], motion.quat[compared])
    return Windows(*map(jnp.asarray, arrays))


def motor_speeds(params: Params, command: Array, dt: float) -> Array:
    """Return the speeds (n, 4) [RPM] of rotors that follow commands (n, 4) [RPM]."""

    def step(speeds: Array, commands: tuple[Array, Array]) -> tuple[Array, Array]:
        for i in range(_SUBSTEPS):
            share = (i + 0.5) / _SUBSTEPS
            command = (1 - share) * commands[0] + share * commands[1]
            rates = rotor_acceleration(split(speeds), split(command), params.rotor_dyn_coef)
            speeds = speeds + dt / _SUBSTEPS * stack(rates)
        return speeds, speeds

    _, later = jax.lax.scan(step, command[0], (command[:-1], command[1:]))
    return jnp.concatenate([command[:1], later])


@jax.jit
def _errors(params: Params, windows: Windows, rotor_vel: Array) -> tuple[Array, Array]:
    """Fly the windows, and return the differences from the recording.

    Args:
        params: Parameters of the drone.
        windows: Where the flights begin.
        rotor_vel: (n, 4) RPM, of the whole flight, at `RATE`.

    Returns:
        Of positions (w, h, 3) [m, world frame], and rotation vectors (w, h, 3) [rad, body frame].
    """
    dt = 1 / RATE
    # Within a step, rotors reach the next recorded speed: so their reaction torque is that of the
    # recording, too.
    follow = jnp.array([[1 / dt, 0.0, 1 / dt, 0.0]])
    params = params.replace(rotor_dyn_coef=follow)
    pos, quat, vel, ang_vel = jnp.split(windows.start, [3, 7, 10], axis=-1)
    body = (split(pos), split(quat), split(vel), split(ang_vel))

    def step(body: Any, step: Array) -> tuple[Any, tuple[Array, Array]]:
        pos, quat, vel, ang_vel = body
        now, then = (split(rotor_vel[windows.first + step + i]) for i in (0, 1))
        middle = tuple((a + b) / 2 for a, b in zip(now, then))
        state = BodyState(pos, quat, vel, ang_vel, middle)
        command: Any = tuple(m + b - a for m, a, b in zip(middle, now, then))
        rate = params.derivative(state, command, no_wrench(pos[0]))
        turned = add(ang_vel, scale(rate.ang_acc, dt / 2))
        body = (
            add(pos, scale(add(vel, scale(rate.acc, dt / 2)), dt)),
            rotate_quat(quat, scale(turned, dt)),
            add(vel, scale(rate.acc, dt)),
            add(ang_vel, scale(rate.ang_acc, dt)),
        )
        return body, (stack(body[0]), stack(body[1]))

    _, (positions, quats) = jax.lax.scan(step, body, jnp.arange(_STEPS))
    pos, quat = (jnp.moveaxis(x[_EVERY - 1 :: _EVERY], 0, 1) for x in (positions, quats))
    return pos - windows.pos, _rotvec(windows.quat, quat)


def _rotvec(a: Array, b: Array) -> Array:
    """Return the rotation from `a` to `b`; its gradient is finite where they are equal."""
    ax, ay, az, aw = split(a)
    bx, by, bz, bw = split(b)
    x = aw * bx - ax * bw - ay * bz + az * by
    y = aw * by + ax * bz - ay * bw - az * bx
    z = aw * bz - ax * by + ay * bx - az * bw
    w = aw * bw + ax * bx + ay * by + az * bz
    sine2 = x * x + y * y + z * z
    sine = jnp.sqrt(jnp.where(sine2 > 1e-16, sine2, 1.0))
    angle = 2 * jnp.arctan2(jnp.where(w < 0, -sine, sine), jnp.abs(w))
    factor = jnp.where(sine2 > 1e-16, angle / sine, 2.0)
    return jnp.stack([x * factor, y * factor, z * factor], axis=-1)


@dataclass(frozen=True)
class OpenLoop:
    """Mean errors of a flight's windows."""

    name: str
    source: str
    """Where the speeds of the rotors come from: "rotor speeds" or "duty cycles"."""
    distance: np.ndarray
    """(h,) m, at each `APART`."""
    angle: np.ndarray
    """(h,) rad."""

    def at(self, seconds: float) -> tuple[float, float]:
        """Return distance [m] and angle [rad] after a multiple of `APART`."""
        i = round(seconds / APART) - 1
        return float(self.distance[i]), float(self.angle[i])


def open_loop_errors(log: FlightLog, params: Params, figures: Mapping[str, Any]) -> OpenLoop:
    """Fly a flight from its rotor speeds, or else from duty cycles and voltage.

    The battery is never in the same place twice, and markers are never exactly level. So the offset
    of the thrust and the tilt of the markers are those of the first third of the flight; the errors
    are those of the rest.

    Args:
        log: In the air, see `flight_logs.motion.in_the_air`.
        params: Of the drone.
        figures: `load_drone(...)` of it, or of the known drone with the same curves.

    Raises:
        ValueError: The flight is too short, or lacks rotor speeds and duty cycles with a voltage.
    """
    motion = motion_of(log, RATE)
    if log.rotor_vel is not None:
        source, speeds = "rotor speeds", jnp.asarray(rotor_speeds(log, motion.time))
    else:
        source, asked = "duty cycles", commanded_speeds(log, figures, motion.time)
        speeds = motor_speeds(params, _padded(asked, _SAMPLES), 1 / RATE)[: len(asked)]
    start, end = float(motion.time[0]), float(motion.time[-1])
    third = start + (end - start) / 3
    known = motion.time < third
    offset, tilt = _offsets(params, motion, np.asarray(speeds), known)
    windows = _tilted(windows_of(motion, third, end), jnp.asarray(tilt))
    flown_params = params.replace(thrust_offset=jnp.asarray(offset))
    n = len(windows.first)
    padded = jax.tree.map(lambda array: _padded(array, _WINDOWS), windows)
    found = _errors(flown_params, padded, _padded(speeds, _SAMPLES))
    distance, angle = (np.linalg.norm(x[:n], axis=-1).mean(axis=0) for x in found)
    return OpenLoop(log.name, source, distance, angle)


def _padded(array: Array | np.ndarray, size: int) -> Array:
    """Return an array whose length is a multiple of `size`, its last row repeated.

    So flights of about the same length need no further compilation.
    """
    array = np.asarray(array)
    last = np.repeat(array[-1:], -len(array) % size, axis=0)
    return jnp.asarray(np.concatenate([array, last]))


def _offsets(
    params: Params, motion: FlightMotion, speeds: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what explains the mean torque (3,) [m] and force (2,) [rad] of a part of a flight.

    The model without an offset is asked for the accelerations of the recorded motion.
    """
    recorded = (motion.pos, motion.quat, motion.vel, motion.ang_vel, speeds)
    columns = [_padded(x, _SAMPLES) for x in recorded]
    parts: Any = (split(x) for x in columns)
    body = BodyState(*parts)
    level = params.replace(
        thrust_offset=jnp.zeros(3), rotor_dyn_coef=jnp.array([[RATE, 0.0, RATE, 0.0]])
    )
    ahead: Any = split(_padded(speeds + np.gradient(speeds, axis=0), _SAMPLES))
    rate, n = level.derivative(body, ahead, no_wrench(columns[0][:, 0])), len(speeds)
    thrust = np.asarray(sum(level.rotor_thrust(body)))[:n][known].mean()
    turn = np.gradient(motion.ang_vel, 1 / RATE, axis=0) - np.asarray(stack(rate.ang_acc))[:n]
    force = np.gradient(motion.vel, 1 / RATE, axis=0) - np.asarray(stack(rate.acc))[:n]
    push = Rotation.from_quat(motion.quat).inv().apply(force)[known].mean(axis=0)
    offset = np.asarray(params.J) @ turn[known].mean(axis=0) / thrust
    return offset, float(params.mass[0]) / thrust * np.array([-push[1], push[0]])


def _tilted(windows: Windows, tilt: Array) -> Windows:
    """Return windows whose body axes are turned about x and y by small angles (2,)."""
    turn: Any = (tilt[0], tilt[1], jnp.zeros(()))

    def turned(quat: Array) -> Array:
        return stack(rotate_quat(split(quat), turn))  # type: ignore[arg-type]

    start = windows.start.at[:, 3:7].set(turned(windows.start[:, 3:7]))
    return windows._replace(start=start, quat=turned(windows.quat))


class Judgement(NamedTuple):
    """Errors of one flight."""

    before: OpenLoop
    """With the known drone."""
    after: OpenLoop
    """With the fit."""

    def __str__(self) -> str:
        """One line: position and attitude at 0.1 and 0.5 s, before and after."""
        parts = []
        for seconds in SHOWN:
            (far, turned), (far_fitted, turned_fitted) = (each.at(seconds) for each in self)
            distance = f"{100 * far:.2g} -> {100 * far_fitted:.2g} cm"
            parts.append(f"after {seconds:g} s {distance}, {turned:.2g} -> {turned_fitted:.2g} rad")
        return f"{self.before.name}: " + "; ".join(parts)


def judged(log: FlightLog, drone: str, fit: Fit, mass: float | None = None) -> Judgement:
    """Judge a fit by a flight.

    Args:
        log: A flight in the air, which the fit does not know.
        drone: The known drone, as for `identify_rigid_body`.
        fit: Its result.
        mass: As for it.

    Raises:
        ValueError: See `open_loop_errors`.
    """
    figures, params = load_drone(drone), params_of(drone, mass)
    models = (params, with_fit(params, fit))
    return Judgement(*(open_loop_errors(log, model, figures) for model in models))


def leave_one_out(
    logs: Sequence[FlightLog], drone: str, mass: float | None = None
) -> list[Judgement]:
    """Judge each flight by the fit of the others.

    Args:
        logs: As for `identify_rigid_body`, at least two.
        drone: As for it.
        mass: As for it.

    Raises:
        ValueError: A flight is too short, or all but one are.
    """
    found = []
    for i, log in enumerate(logs):
        others = identify_rigid_body([*logs[:i], *logs[i + 1 :]], drone, mass)
        found.append(judged(log, drone, others, mass))
    return found


def params_of(drone: str, mass: float | None) -> Params:
    """Return the parameters of a drone, with another mass [kg] if one is given."""
    params = Params.create(drone)
    return params if mass is None else params.replace(mass=jnp.full_like(params.mass, mass))
