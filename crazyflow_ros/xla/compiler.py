"""Use of features of JAX and XLA outside their public interface, and fallbacks.

Attributes and options of the compiler may change between versions. Each is tried once, on a small
function. If it fails, everything is compiled with XLA's defaults, which is slower but correct, and
one warning is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any

import jax
import numpy as np

_LOGGER = logging.getLogger("crazyflow_ros")

_NUMBERS = jax.ShapeDtypeStruct((3,), np.float32)

ONE_KERNEL = {"inlineable": "false", "xla_cpu_small_call": "true"}
"""Attributes with which a called function becomes one kernel, see `kernels.one_kernel`."""


def set_metadata(**attributes: str | None) -> AbstractContextManager[None]:
    """Set attributes for everything traced within the context; None removes one."""
    metadata = import_module("jax.experimental.xla_metadata")
    context: AbstractContextManager[None] = metadata.set_xla_metadata(**attributes)
    return context


@cache
def has_one_kernel() -> bool:
    """Return whether XLA on the CPU compiles a function with `ONE_KERNEL` to one kernel."""

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        with set_metadata(**dict.fromkeys(ONE_KERNEL)):
            return jax.lax.fori_loop(0, x[0].astype(int), lambda _, y: y * 0.5 + x, x)

    def outer(x: jax.Array) -> jax.Array:
        with set_metadata(**ONE_KERNEL):
            return inner(x)

    def is_called() -> bool:
        # XLA always calls loops over little memory.
        numbers = jax.ShapeDtypeStruct((100_000,), np.float32)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            compiled = jax.jit(outer).lower(numbers).compile()
        text = compiled.as_text() or ""
        entry = text[text.index("ENTRY") :]
        return " call(" in entry and " while(" not in entry

    return works(is_called, f"the attributes {', '.join(ONE_KERNEL)} of the compiler")


@cache
def has_kernels_of_threads() -> bool:
    """Return whether JAX compiles kernels of Pallas for the GPU by Triton, see `threads`."""

    def compiles() -> bool:
        pallas = import_module("jax.experimental.pallas")
        triton = import_module("jax.experimental.pallas.triton")

        def double(x: Any, y: Any) -> None:
            y[...] = 2 * x[...]

        numbers = jax.ShapeDtypeStruct((64,), np.float32)
        params = triton.CompilerParams(num_warps=2, num_stages=1)
        call = pallas.pallas_call(double, out_shape=numbers, compiler_params=params)
        lowered = jax.jit(call).trace(numbers).lower(lowering_platforms=("cuda",))
        # Without a GPU, code for one can be lowered, but not compiled.
        if jax.default_backend() == "gpu":
            with jax.default_device(jax.local_devices(backend="gpu")[0]):
                lowered.compile()
        return True

    return works(compiles, "kernels of Pallas by Triton")


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of XLA that it supports."""
    return {name: value for name, value in options.items() if _has_option(name, value)}


@cache
def _has_option(name: str, value: Any) -> bool:
    def compiles() -> bool:
        jax.jit(lambda x: x, compiler_options={name: value}).lower(_NUMBERS).compile()
        return True

    return works(compiles, f"the option {name} of the compiler")


def works(attempt: Callable[[], bool], what: str) -> bool:
    """Return whether a feature of JAX, XLA or MJX works as expected; log a warning if not.

    Args:
        attempt: Tries the feature; may raise any exception.
        what: Name of the feature.
    """
    try:
        if attempt():
            return True
        reason = "it has no effect"
    except Exception as error:  # from any part of JAX or XLA that has changed
        reason = f"{type(error).__name__}: {str(error)[:200]}"
    _LOGGER.warning(
        "jax %s no longer supports %s (%s): the simulation is slower, with the same results",
        *(jax.__version__, what, reason),
    )
    return False
