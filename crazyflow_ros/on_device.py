"""Arrays of NumPy on JAX's device."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike


def on_device(values: ArrayLike) -> Array:
    """Return a copy of numbers in JAX's precision.

    `jnp.array` compiles a function for each shape, half of the time of building a `Sim`.
    """
    array: Array = jax.device_put(np.array(values))
    return array
