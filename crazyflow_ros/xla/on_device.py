"""Arrays on JAX's device for which nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from crazyflow_ros.xla.compiler import works


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


class ArrayPlace(NamedTuple):
    """Where an array is."""

    device: jax.Device
    committed: bool
    """Whether it stays there; otherwise JAX may compute elsewhere."""

    @classmethod
    def of(cls, array: Array) -> Self:
        """Return where an array is that has one device."""
        (device,) = array.devices()
        return cls(device, array.committed)

    def put(self, array: Array | np.ndarray, *, may_alias: bool | None = None) -> Array:
        """Return an array there; one of JAX is there already.

        Args:
            array: The array.
            may_alias: See `jax.device_put`.
        """
        if isinstance(array, Array):
            return array
        device = self.device if self.committed else None
        with jax.default_device(self.device):
            put: Array = jax.device_put(array, device, may_alias=may_alias)
        return put


def seen_by_jax(array: np.ndarray, place: ArrayPlace | None = None) -> Array | np.ndarray:
    """Return an argument that passes the present numbers of an array to compiled functions.

    On the CPU, it is an array of JAX over the same memory if that begins at a multiple of 64 bytes;
    otherwise, it is the array itself, which JAX copies in each call.

    Args:
        array: The array.
        place: Where compiled functions compute; by default on JAX's default device.
    """
    alias = (place.put if place else jax.device_put)(array, may_alias=True)
    return alias if alias.unsafe_buffer_pointer() == array.ctypes.data else array


def copying(array: np.ndarray, like: Array) -> Callable[[], Array]:
    """Return a function that copies the present numbers of an array of NumPy to a device.

    `jax.device_put` takes ten times as long.

    Args:
        array: The array.
        like: An array on the device.
    """
    put = _put()
    sharding, committed, devices = like.sharding, like.committed, list(like.devices())
    if put is None:
        jitted = jax.jit(jnp.copy, out_shardings=sharding if committed else None)
        return lambda: jitted(array.copy())
    shape = jax.core.ShapedArray(array.shape, array.dtype)
    # JAX may read the memory later, or keep it, and so gets a copy.
    return lambda: put(shape, sharding, [array.copy()], devices, committed)


@cache
def _put() -> Callable[..., Any] | None:
    """Return the function of jaxlib on which `jax.device_put` is built; None if it is missing."""
    put: Any = getattr(import_module("jaxlib._jax"), "batched_device_put", None)

    def copies() -> bool:
        device, numbers = jax.local_devices()[0], np.ones((1, 2), np.float32)
        shape = jax.core.ShapedArray(numbers.shape, numbers.dtype)
        sharding = jax.sharding.SingleDeviceSharding(device)
        copy: Any = put(shape, sharding, [numbers], [device], False)
        is_right = isinstance(copy, Array) and not copy.committed
        return is_right and np.asarray(copy).tobytes() == numbers.tobytes()

    return put if works(copies, "copies by batched_device_put") else None
