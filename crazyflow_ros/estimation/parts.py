"""The arrays of an `Estimate` as components, and the belief of a filter that they hold."""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.estimation.kalman import Belief, N

Parts = dict[str, tuple[Array, ...]]
"""Components of the arrays of an `Estimate`, by name."""
TRIANGLE = [(i, j) for i in range(N) for j in range(i, N)]
"""Rows and columns of the elements of `Estimate.covariance`."""
WHERE = {pair: k for k, pair in enumerate(TRIANGLE)}
"""Their places there."""


def belief_of(parts: Parts) -> Belief:
    """Return the belief of components."""
    rows = [[parts["covariance"][WHERE[min(i, j), max(i, j)]] for j in range(N)] for i in range(N)]
    zero = jnp.zeros_like(parts["pos"][0])
    mean = jnp.stack([*parts["pos"], *parts["body_vel"], zero, zero, zero])
    cov = jnp.stack([jnp.stack(row) for row in rows])
    return Belief(mean, parts["quat"], cov)  # type: ignore[arg-type]


def parts_of(belief: Belief) -> Parts:
    """Return the components of a belief whose attitude error is zero."""
    return {
        "pos": belief.pos,
        "quat": belief.quat,
        "body_vel": belief.vel,
        "covariance": tuple(belief.cov[i, j] for i, j in TRIANGLE),
    }


def is_zero(components: tuple[Array, ...]) -> Array:
    """Return where all components are zero."""
    return reduce(jnp.logical_and, (c == 0 for c in components))
