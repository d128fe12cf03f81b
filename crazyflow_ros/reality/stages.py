"""Stages of `Sim` whose input is recorded: the drone's estimate, and the battery's voltage."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import (
    Vec4,
    rotation_matrix,
    split,
    stack,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.reality.recorded import NO_ERROR
from crazyflow_ros.sim import Battery, SimData

ERROR, VOLTAGE = "estimate_error", "voltage"
"""Plugins that take the recorded values: (N, M, 10), see `Recorded.error`, and (N, M, 1) V."""


class RecordedEstimate:
    """Takes the place of the estimator: the true state plus the recorded error of the estimate."""

    def begin(self, data: SimData) -> SimData:
        """Return the data without errors."""
        none = jnp.asarray(NO_ERROR, data.states.pos.dtype)
        errors = jnp.broadcast_to(none, (*data.states.pos.shape[:2], 10))
        return data.replace(plugins=data.plugins | {ERROR: errors})

    def __call__(self, data: SimData) -> SimData:
        """Write the estimate."""
        assert data.estimate is not None
        state, error = data.states, data.plugins[ERROR]
        quat = _product(split(state.quat), split(error[..., 3:7]))  # type: ignore[arg-type]
        velocity = vector(state.vel + error[..., 7:])
        estimate = data.estimate.replace(
            pos=state.pos + error[..., :3],
            quat=stack(quat),
            body_vel=stack(transform(transpose(rotation_matrix(quat)), velocity)),
        )
        return data.replace(estimate=estimate)


@dataclass(frozen=True)
class RecordedVoltage:
    """Takes the place of the battery: rotors are as fast as they get with the recorded voltage."""

    battery: Battery

    def begin(self, data: SimData) -> SimData:
        """Return the data with a full battery."""
        volts = jnp.full((*data.states.pos.shape[:2], 1), self.battery.full, data.states.pos.dtype)
        data = data.replace(plugins=data.plugins | {VOLTAGE: volts})
        return self.battery.limited(data, volts[..., 0])

    def __call__(self, data: SimData) -> SimData:
        """Limit the rotors."""
        return self.battery.limited(data, data.plugins[VOLTAGE][..., 0])


def _product(a: Vec4, b: Vec4) -> tuple[Array, Array, Array, Array]:
    """Return the product of two quaternions."""
    (x, y, z, w), (i, j, k, r) = a, b
    return (
        w * i + x * r + y * k - z * j,
        w * j - x * k + y * r + z * i,
        w * k + x * j - y * i + z * r,
        w * r - x * i - y * j - z * k,
    )
