"""Functions of arrays of JAX, NumPy and torch, and of expressions of CasADi.

Equations of motion and controllers that are written with these functions work with all four
libraries. JAX arrays go to `jax.numpy` unchanged: XLA compiles the same as without this module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

__all__ = [
    "absolute",
    "arctan2",
    "clip",
    "exp",
    "library",
    "like",
    "maximum",
    "nearest_integer",
    "ones_like",
    "rsqrt",
    "sqrt",
    "where",
    "zeros_like",
]

Number = Array | float


def library(*values: Any) -> Any:
    """Return the module whose functions accept the given values.

    Numbers fit any library. NumPy arrays may be constants, so they fit any other library, too.

    Args:
        *values: Arrays of one library, CasADi expressions, numbers.
    """
    roots = set()
    for value in values:
        if isinstance(value, jax.Array):
            return jnp
        roots.add(type(value).__module__.partition(".")[0])
    for root, module in _LIBRARIES.items():
        if root in roots:
            return import_module(module)
    return jnp


_LIBRARIES = {
    "torch": "crazyflow_ros.elementwise.on_torch",
    "casadi": "crazyflow_ros.elementwise.on_casadi",
    "numpy": "numpy",
}
"""Names of modules by the package of an array's type."""


def like(constant: Any, array: Array) -> Array:
    """Convert a constant so that it can be combined with an array.

    Args:
        constant: Number, or array of NumPy or of the other array's library.
        array: Array of any library.
    """
    lib = library(array)
    is_other = isinstance(constant, np.ndarray) and hasattr(lib, "constant")
    return lib.constant(constant, array) if is_other else constant


def where(condition: Any, x: Number, y: Number) -> Array:
    """Return x where the condition is true, y elsewhere."""
    return library(condition, x, y).where(condition, x, y)


def sqrt(x: Array) -> Array:
    """Return the square root."""
    return library(x).sqrt(x)


def exp(x: Array) -> Array:
    """Return the exponential function."""
    return library(x).exp(x)


def rsqrt(x: Array) -> Array:
    """Return the inverse of the square root."""
    lib = library(x)
    return jax.lax.rsqrt(x) if lib is jnp else 1 / lib.sqrt(x)


def maximum(x: Array, y: Number) -> Array:
    """Return the larger of two numbers."""
    return library(x, y).maximum(x, y)


def clip(x: Array, least: Number, most: Number) -> Array:
    """Return the nearest number between two limits."""
    return library(x, least, most).clip(x, least, most)


def absolute(x: Array) -> Array:
    """Return the absolute value."""
    return library(x).abs(x)


def nearest_integer(x: Array) -> Array:
    """Return the nearest integer; halfway between two, the even one."""
    return library(x).round(x)


def arctan2(y: Array, x: Array) -> Array:
    """Return the angle in -pi..pi of the point (x, y), rad."""
    return library(y, x).arctan2(y, x)


def zeros_like(x: Array) -> Array:
    """Return zeros of the same shape."""
    return library(x).zeros_like(x)


def ones_like(x: Array) -> Array:
    """Return ones of the same shape."""
    return library(x).ones_like(x)
