"""What tests of the controllers have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm

from crazyflow_ros.dynamics.components import BodyState, split, stack

LEVEL = (0.0, 0.0, 0.0, 1.0)


def components(array: Any) -> tuple[jax.Array, ...]:
    return split(jnp.asarray(array, float))


def array(parts: Sequence[jax.Array]) -> np.ndarray:
    return np.asarray(stack(tuple(jnp.asarray(p) for p in parts)))


def body(pos: Any = (0, 0, 0), quat: Any = LEVEL, vel: Any = (0, 0, 0), ang_vel: Any = (0, 0, 0)):
    """A measured state of drones (..., k)."""
    given = [(pos, 3), (quat, 4), (vel, 3), (ang_vel, 3), ((0,) * 4, 4)]
    shape = np.broadcast_shapes(*(np.shape(x)[:-1] for x, _ in given))
    fields = (components(jnp.broadcast_to(jnp.asarray(x), (*shape, n))) for x, n in given)
    return BodyState(*fields)  # type: ignore[arg-type]


def state_setpoint(pos: Any, vel: Any = (0, 0, 0), acc: Any = (0, 0, 0), quat: Any = LEVEL):
    return tuple(map(components, (pos, vel, acc, quat)))


def fresh(sizes: dict[str, int], shape: tuple[int, ...] = ()) -> dict[str, tuple[jax.Array, ...]]:
    return {name: (jnp.zeros(shape),) * n for name, n in sizes.items()}


def linear(matrix: np.ndarray, start: np.ndarray, offset: np.ndarray, times: np.ndarray):
    """Solution of x' = matrix x + offset at some times, (n, k)."""
    k = len(start)
    whole = np.zeros((k + 1, k + 1))
    whole[:k, :k], whole[:k, k] = matrix, offset
    return np.array([(expm(whole * t) @ np.append(start, 1.0))[:k] for t in times])


def rolled(step: Callable[[Any], tuple[Any, Any]], start: Any, n: int, every: int) -> np.ndarray:
    """Outputs of a loop, (n / every, ...), each before so many steps."""
    flown = jax.jit(
        lambda start: jax.lax.scan(lambda carry, _: step(carry), start, None, length=n)[1],
    )
    return jax.tree.map(lambda x: np.asarray(x[::every]), flown(start))
