"""Numerical integrators of the drones' state. All are explicit with a fixed step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Vec3,
    add,
    cross,
    rotate_quat,
    scale,
)
from crazyflow_ros.sim.integrator import Integrator as Integrator  # as in Crazyflow

if TYPE_CHECKING:
    from crazyflow_ros.sim.integrator import DerivativeFn


def _advance(state: BodyState, rate: BodyDerivative, dt: float | Array) -> BodyState:
    """Advance the state with a constant derivative for a time `dt`."""
    quat = rotate_quat(state.quat, scale(rate.ang_vel, dt))
    pos, vel, ang_vel, rotor_vel = jax.tree.map(
        lambda x, x_dot: x + x_dot * dt,
        (state.pos, state.vel, state.ang_vel, state.rotor_vel),
        (rate.vel, rate.acc, rate.ang_acc, rate.rotor_acc),
    )
    return BodyState(pos, quat, vel, ang_vel, rotor_vel)


def euler(state: BodyState, derivative: DerivativeFn, dt: float) -> BodyState:
    """Advance by an explicit Euler step."""
    return _advance(state, derivative(state), dt)


def symplectic_euler(state: BodyState, derivative: DerivativeFn, dt: float) -> BodyState:
    """Advance by a semi-implicit Euler step: velocities first, then the pose with them.

    As in Crazyflow, body rates advance explicitly, with the gyroscopic torque from before the step.
    It is symplectic for translation only: a drone that tumbles gains energy as with `euler`.
    """
    rate = derivative(state)
    new = _advance(state, rate, dt)
    return _advance(state, rate._replace(vel=new.vel, ang_vel=new.ang_vel), dt)


def rk4(state: BodyState, derivative: DerivativeFn, dt: float) -> BodyState:
    """Advance by a classic Runge-Kutta step.

    The attitude is integrated in the Lie algebra, so that it is also of order 4. H. Munthe-Kaas,
    "High order Runge-Kutta methods on manifolds", Appl. Numer. Math. 1999.
    """
    nodes, weights = jnp.array([0, 0.5, 0.5, 1]) * dt, jnp.array([1, 2, 2, 1]) / 6

    # A loop instead of four copies, which the compiler would fuse into each other repeatedly.
    def stage(
        i: Array, carry: tuple[BodyDerivative, BodyDerivative]
    ) -> tuple[BodyDerivative, BodyDerivative]:
        previous, mean = carry
        step = nodes[i].astype(state.pos[0].dtype)
        rate = derivative(_advance(state, previous, step))
        rate = rate._replace(ang_vel=_dexpinv(scale(previous.ang_vel, step), rate.ang_vel))
        weight = weights[i].astype(state.pos[0].dtype)
        return rate, jax.tree.map(lambda m, r: m + weight * r, mean, rate)

    zero = BodyDerivative(
        *jax.tree.map(
            jnp.zeros_like, (state.vel, state.ang_vel, state.vel, state.ang_vel, state.rotor_vel)
        )
    )
    _, mean = jax.lax.fori_loop(0, 4, stage, (zero, zero))
    return _advance(state, mean, dt)


def _dexpinv(rotvec: Vec3, ang_vel: Vec3) -> Vec3:
    """Return the rate of the rotation vector of q0 * exp(rotvec), to third order."""
    first = cross(rotvec, ang_vel)
    return add(ang_vel, add(scale(first, 1 / 2), scale(cross(rotvec, first), 1 / 12)))
