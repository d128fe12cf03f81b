"""Filters of many drones compile to one kernel, which calls no library of XLA's runtime."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.drones.deck_optics import nearest_target
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.estimation import Positioning, below
from crazyflow_ros.estimation.base_stations import USUAL_STATIONS
from crazyflow_ros.estimation.estimate import Estimate
from crazyflow_ros.estimation.instrument_readings import PoseReading
from crazyflow_ros.xla.kernels import fits_one_kernel, one_kernel, zero

ANCHORS = tuple((x, y, z) for x in (-3, 3) for y in (-3, 3) for z in (0.2, 2.5))


@pytest.mark.parametrize(
    "positioning",
    [
        Positioning(),
        Positioning(motion_capture=True),
        Positioning(stations=USUAL_STATIONS),
        *(Positioning(anchors=ANCHORS, ranging=kind) for kind in ("twr", "tdoa2", "tdoa3")),
    ],
    ids=["decks", "motion capture", "base stations", "twr", "tdoa2", "tdoa3"],
)
def test_filters_of_many_drones_fit_one_kernel(positioning: Positioning) -> None:
    n, obstacles = 1000, Obstacles.create(["box"], [[1, 1, 1]], [[0, 0, -1]])
    estimate, zeros = Estimate.create(1, n, positioning, 100, seed=1), jnp.zeros((1, n))
    now = PoseReading((zeros,) * 3, (zeros, zeros, zeros, zeros + 1), (zeros,) * 3)

    def updated(estimate: Estimate, steps: jax.Array, obstacles: Obstacles) -> Estimate:
        return estimate.updated(now, zeros > 0, steps, obstacles)

    jaxpr = jax.make_jaxpr(updated)(estimate, jnp.ones((1, 1), int), obstacles)
    assert fits_one_kernel(jaxpr.jaxpr)


def test_a_kernel_finds_the_nearest_targets_of_many_drones() -> None:
    rng = np.random.default_rng(0)
    far = rng.choice([0.5, 0.9, 1.5, below.FAR], (below._RAYS.shape[0], 1, 1000))
    distances = np.asarray(far * rng.uniform(1, 1.2, far.shape), np.float32)
    kernel = jax.jit(one_kernel(lambda x: below._nearest_target(x) + zero(x)))
    expected = nearest_target(np.where(distances < below.FAR, distances, np.inf))
    np.testing.assert_array_equal(kernel(jnp.minimum(distances, below.FAR)), expected)
