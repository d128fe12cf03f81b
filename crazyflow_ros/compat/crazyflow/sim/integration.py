"""Integrators as stages: functions of data, and of a function that returns their derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, split
from crazyflow_ros.sim.data import SimData, SimStateDeriv
from crazyflow_ros.sim.integrator import Integrator

__all__ = [
    "Integrator",
    "euler",
    "integrate",
    "integrate_symplectic",
    "rk4",
    "rk4_average",
    "symplectic_euler",
]

DerivFn = Callable[[SimData], SimStateDeriv]


def euler(data: SimData, deriv_fn: DerivFn) -> SimData:
    """Advance by a tick, see `Integrator.euler`."""
    return _advanced(Integrator.euler, data, deriv_fn, 1 / data.core.freq)


def rk4(data: SimData, deriv_fn: DerivFn) -> SimData:
    """Advance by a tick, see `Integrator.rk4`; also the attitude is of order 4."""
    return _advanced(Integrator.rk4, data, deriv_fn, 1 / data.core.freq)


def symplectic_euler(data: SimData, deriv_fn: DerivFn) -> SimData:
    """Advance by a tick, see `Integrator.symplectic_euler`."""
    return _advanced(Integrator.symplectic_euler, data, deriv_fn, 1 / data.core.freq)


def integrate(data: SimData, deriv: SimStateDeriv, dt: float) -> SimData:
    """Advance by dt [s] with a constant derivative."""
    return _advanced(Integrator.euler, data, lambda _: deriv, dt)


def integrate_symplectic(data: SimData, deriv: SimStateDeriv, dt: float) -> SimData:
    """Advance by dt [s] with a constant derivative, the pose with the new velocities."""
    return _advanced(Integrator.symplectic_euler, data, lambda _: deriv, dt)


def rk4_average(
    k1: SimStateDeriv, k2: SimStateDeriv, k3: SimStateDeriv, k4: SimStateDeriv
) -> SimStateDeriv:
    """Return the mean of four derivatives with the weights of Runge and Kutta."""
    mean: SimStateDeriv = jax.tree.map(
        lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4
    )
    return mean


def _advanced(method: Integrator, data: SimData, deriv_fn: DerivFn, dt: float) -> SimData:
    def rate(state: BodyState) -> BodyDerivative:
        deriv = deriv_fn(data.replace(states=data.states.with_components(state)))
        parts: Any = (split(getattr(deriv, name)) for name in BodyDerivative._fields)
        return BodyDerivative(*parts)

    state = method.fn(data.states.components, rate, dt)
    return data.replace(states=data.states.with_components(state))
