"""Memory that NumPy writes to and compiled functions read from."""

from __future__ import annotations

import numpy as np
from jax import Array

from crazyflow_ros.xla.on_device import default_platform, seen_by_jax

_ALIGNMENT = 64  # bytes; XLA on the CPU copies arrays with less


def readable_by_jax(size: int, dtype: np.dtype) -> tuple[np.ndarray, Array | np.ndarray]:
    """Return an array of zeros, and an argument that passes its numbers to compiled functions.

    On the CPU, the argument is a JAX array over the same memory: before writing to the array, wait
    for the last call to finish. Elsewhere it is the array itself, which JAX copies in each call.
    """
    memory = np.zeros(size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size * dtype.itemsize].view(dtype)
    return array, seen_by_jax(array) if default_platform() == "cpu" else array
