"""Differences between recorded and simulated flights, as functions of a model's parameters.

Parameters are logarithms, so that none changes its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics import Dynamics, so_rpy
from crazyflow_ros.dynamics.components import BodyState, no_wrench, split, stack, vector
from crazyflow_ros.identification.recorded_flight import RecordedFlight

WINDOW = 1.0
"""Time [s] after which a simulated position starts again from the recorded one, and after which
errors are taken as independent."""
_SUBSTEP = 0.005  # s, longest step of the integration of an attitude
_SHORTEST = 10  # samples of a window
_NEAR = 0.07  # s, to both sides of a sample, from which its velocity is computed

ROTATION = ("rpy_coef", "rpy_rates_coef", "cmd_rpy_coef")
"""Each has two values: for roll and pitch, and for yaw."""
TRANSLATION = {
    Dynamics.so_rpy: ("cmd_f_coef",),
    Dynamics.so_rpy_rotor: ("cmd_f_coef", "thrust_dyn_coef"),
    Dynamics.so_rpy_rotor_drag: ("cmd_f_coef", "thrust_dyn_coef", "drag_xy", "drag_z"),
}


Residuals = Callable[[Array], Array]
"""Errors (segments, n) as a function of parameters; segments last about `WINDOW`."""


def sign(name: str) -> int:
    """Return the sign of a parameter."""
    return -1 if name in ("rpy_coef", "rpy_rates_coef", "drag_xy", "drag_z") else 1


def rotation_error(flight: RecordedFlight) -> Residuals:
    """Return the errors of roll, pitch and yaw [rad], simulated from the commands alone.

    They are a function of (6,) logarithms of the parameters `ROTATION`. At least the first second
    is left out: the initial rates, about which the samples say little, decay in it.

    Args:
        flight: The recorded flight.
    """
    dt, rpy = np.diff(flight.time), flight.rpy
    start = np.stack([rpy[0], (rpy[1] - rpy[0]) / dt[0]])
    k, n = _samples(dt), ceil(dt.max() / _SUBSTEP)
    arrays = map(jnp.array, (start, dt, flight.command[:-1], rpy[1:]))
    return partial(_rotation_error, *arrays, n=n, k=k)


def translation_error(model: Dynamics, mass: float, flight: RecordedFlight) -> Residuals:
    """Return the errors of the position [m], simulated in windows with the recorded attitude.

    They are a function of the logarithms of the model's parameters in `TRANSLATION`. Straight lines
    at constant speed are subtracted, because initial positions and velocities are not known
    exactly.

    Args:
        model: One of `TRANSLATION`.
        mass: kg.
        flight: The recorded flight.
    """
    dt = np.diff(flight.time)
    k = _samples(dt)
    is_first, vel = np.arange(len(dt)) % k == 0, np.zeros_like(flight.pos)
    for i in range(k, len(dt) // k * k, k):  # without the first window, which does not count
        vel[i] = _velocity(flight, i, max(2, round(k * _NEAR / WINDOW)))
    rows = (dt, is_first, flight.pos, vel, flight.quat, flight.command)
    return partial(_translation_error, jnp.array(mass), *map(jnp.array, rows), model=model, k=k)


def _samples(dt: np.ndarray) -> int:
    """Return the number of samples of a window."""
    return max(_SHORTEST, round(WINDOW / float(np.median(dt))))


def _velocity(flight: RecordedFlight, sample: int, n: int) -> np.ndarray:
    """Return the velocity at a sample, that of the cubic fitted to it and `n` to each side."""
    near = slice(sample - n, sample + n + 1)
    time = flight.time[near] - flight.time[sample]
    return np.polynomial.polynomial.polyfit(time, flight.pos[near], 3)[1]


@partial(jax.jit, static_argnames=("n", "k"))
def _rotation_error(
    start: Array, dt: Array, command: Array, rpy: Array, theta: Array, *, n: int, k: int
) -> Array:
    params = _rotation_params(theta)

    def step(state: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        seconds, command = row

        def rate(state: Array) -> Array:
            angles, rates = (vector(part) for part in state)
            wanted: Any = split(command)
            acceleration = so_rpy.rpy_acceleration(angles, rates, wanted, params)
            return jnp.stack([state[1], stack(acceleration)])

        for _ in range(n):
            state = _runge_kutta(rate, state, seconds / n)
        return state, state[0]

    _, angles = jax.lax.scan(step, start, (dt, command))
    segments = max(0, len(dt) // k - 1)
    return (angles - rpy)[len(dt) - segments * k :].reshape(segments, 3 * k)


@partial(jax.jit, static_argnames=("model", "k"))
def _translation_error(
    mass: Array,
    dt: Array,
    is_first: Array,
    pos: Array,
    vel: Array,
    quat: Array,
    command: Array,
    theta: Array,
    *,
    model: Dynamics,
    k: int,
) -> Array:
    params = _translation_params(model, mass, theta)

    def rate(state: Array, attitude: Array, command: Array) -> Array:
        still = (jnp.zeros(()),) * 3
        _, vel, thrust = jnp.split(state, [3, 6])
        parts: Any = still, split(attitude), split(vel), still, tuple(thrust) * 4
        wanted: Any = split(command)
        found = params.derivative(BodyState(*parts), wanted, no_wrench(still[0]))
        return jnp.concatenate([vel, stack(found.acc), jnp.array(found.rotor_acc[:1])])

    def step(state: Array, row: Any) -> tuple[Array, Array]:
        seconds, is_first, pos, vel, attitude, next_attitude, command = row
        state = jnp.where(is_first, jnp.concatenate([pos, vel, state[6:]]), state)
        begin = rate(state, attitude, command)
        end = rate(state + seconds * begin, next_attitude, command)
        state = state + seconds / 2 * (begin + end)
        return state, state[:3]

    rows = (dt, is_first, pos[:-1], vel[:-1], quat[:-1], quat[1:], command[:-1])
    start = jnp.zeros(7).at[6].set(command[0, 3])
    _, flown = jax.lax.scan(step, start, rows)
    n = len(dt) // k
    windows = (flown - pos[1:])[: n * k].reshape(n, k, 3)
    line, _ = np.linalg.qr(np.stack([np.ones(k), np.arange(k)], axis=1))
    windows -= jnp.einsum("it,jt,njd->nid", line, line, windows)
    return windows[1:].reshape(-1, 3 * k)  # the thrust before the first window is not known


def _rotation_params(theta: Array) -> so_rpy.Params:
    both = dict(zip(ROTATION, jnp.exp(theta).reshape(3, 2)))
    axes = jnp.array([0, 0, 1])
    return so_rpy.Params.lazy({name: sign(name) * both[name][axes] for name in ROTATION}.get)


def _translation_params(model: Dynamics, mass: Array, theta: Array) -> Any:
    given = {name: sign(name) * x for name, x in zip(TRANSLATION[model], jnp.exp(theta))}
    drag = [given.pop(name, 0.0) for name in ("drag_xy", "drag_z")]
    fields = {
        **{name: value[None] for name, value in given.items()},
        "mass": mass[None],
        "gravity_vec": jnp.array([0, 0, -9.81]),
        "J_inv": jnp.zeros((3, 3)),  # the attitude is that of the recording
        **dict.fromkeys(ROTATION, jnp.zeros(3)),
        "acc_coef": jnp.zeros(1),
        "drag_matrix": jnp.diag(jnp.array([drag[0], drag[0], drag[1]])),
        "wind": jnp.zeros(3),
    }
    return model.params.lazy(fields.__getitem__)


def _runge_kutta(rate: Callable[[Array], Array], state: Array, dt: Array) -> Array:
    """Return the state after a step of the classical method."""
    a = rate(state)
    b = rate(state + dt / 2 * a)
    c = rate(state + dt / 2 * b)
    d = rate(state + dt * c)
    return state + dt / 6 * (a + 2 * b + 2 * c + d)
