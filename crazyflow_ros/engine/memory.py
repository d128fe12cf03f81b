"""Memory that NumPy writes to and compiled functions read from."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

from crazyflow_ros.xla.on_device import default_platform

_ALIGNMENT = 64  # bytes; XLA on the CPU copies arrays with less


def readable_by_jax(size: int, dtype: np.dtype) -> tuple[np.ndarray, Array | np.ndarray]:
    """Return an array of zeros, and an argument that passes its numbers to compiled functions.

    On the CPU, the argument is a JAX array over the same memory: before writing to the array, wait
    for the last call to finish. Elsewhere it is the array itself, which JAX copies in each call.
    """
    memory = np.zeros(size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size * dtype.itemsize].view(dtype)
    if default_platform() != "cpu":
        return array, array
    alias = jax.device_put(array, may_alias=True)
    same = alias.unsafe_buffer_pointer() == array.ctypes.data
    return array, alias if same else array
