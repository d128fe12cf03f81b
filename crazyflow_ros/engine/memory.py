"""Memory that NumPy writes and compiled functions read."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

_ALIGNMENT = 64  # bytes; XLA on the CPU copies what is not


def readable_by_jax(size: int, dtype: np.dtype) -> tuple[np.ndarray, Array | np.ndarray]:
    """An array of zeros, and what hands its numbers of then to a compiled function.

    On the CPU that is a JAX array over the same memory: whoever writes must have awaited the last
    call. Elsewhere it is the array itself, of which JAX makes a copy in each call.
    """
    memory = np.zeros(size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size * dtype.itemsize].view(dtype)
    if jax.default_backend() != "cpu":
        return array, array
    alias = jax.device_put(array, may_alias=True)
    same = alias.unsafe_buffer_pointer() == array.ctypes.data
    return array, alias if same else array
