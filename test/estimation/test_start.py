"""What a filter believes first."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from crazyflow_ros.estimation import Positioning
from crazyflow_ros.estimation.estimate import Estimate
from crazyflow_ros.estimation.instrument_readings import PoseReading

FREQ, N = 100, 64


def test_a_drone_that_stands_is_not_believed_to_slide() -> None:
    """Though no sensor says so, and the accelerometer's bias moves it by 0.2 m/s in a second."""
    nothing = Positioning(flow=False, range=False)
    estimate, zero = Estimate.create(1, N, nothing, FREQ, seed=8), jnp.zeros((1, N))
    now = PoseReading((zero, zero, zero + 0.014), (zero, zero, zero, zero + 1), (zero,) * 3)
    updated = jax.jit(
        lambda estimate, step: estimate.updated(now, zero > 0, step),
    )
    for tick in range(FREQ + 1):
        estimate = updated(estimate, jnp.full((1, 1), tick))
    assert np.square(estimate.errors[..., 6:8]).mean() > 0.1**2  # the bias is there
    speed = np.linalg.norm(estimate.vel[0, :, :2], axis=1)
    assert speed.max() < 0.05
