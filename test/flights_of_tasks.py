"""Instants of flights, for tests of tasks."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.envs import Flight
from crazyflow_ros.sim import Sim


def flight_of(pos: Array, error: Array, origin: Array, **others: Any) -> Flight:
    """Return level drones at rest, one in each world, with their errors and origins (N, k)."""
    n, zero = len(pos), jnp.zeros_like(pos)
    quat = jnp.tile(jnp.array([0.0, 0, 0, 1]), (n, 1))
    four = jnp.zeros((n, 4))
    motion = (pos, zero, error, zero, origin, quat, zero, four, four, four, jnp.zeros((n, 1)))
    return Flight(*motion, Sim(n).data)._replace(**others)
