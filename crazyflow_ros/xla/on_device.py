"""Arrays on JAX's device for which nothing is compiled."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike


def default_platform() -> str:
    """Return the platform of the device for which JAX compiles by default."""
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    return jax.default_backend() if device is None else getattr(device, "platform", str(device))


def on_device(values: ArrayLike, device: Any = None) -> Array:
    """Return a copy of numbers in JAX's precision, on a device or JAX's default one.

    `jnp.array` compiles a function for each shape, which takes half of the time to build a `Sim`.
    """
    array: Array = jax.device_put(np.array(values), device)
    return array


def random_key(seed: int) -> Array:
    """Return `jax.random.key(seed)`, without the compilation that JAX needs for it."""
    is_default = jax.config.jax_default_prng_impl == "threefry2x32"  # type: ignore[attr-defined]
    if not is_default or type(seed) is not int or seed.bit_length() > 63:
        return jax.random.key(seed)
    high = seed >> 32 if jax.dtypes.canonicalize_dtype(int) == np.int64 else 0
    words = np.array([high & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(on_device(words))


def seen_by_jax(array: np.ndarray) -> Array | np.ndarray:
    """Return an argument that passes the present numbers of an array to compiled functions.

    On the CPU, it is an array of JAX over the same memory if that begins at a multiple of 64 bytes;
    otherwise, it is the array itself, which JAX copies in each call.

    Args:
        array: The array.
    """
    alias = jax.device_put(array, may_alias=True)
    return alias if alias.unsafe_buffer_pointer() == array.ctypes.data else array
