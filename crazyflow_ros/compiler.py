"""What is asked of JAX and XLA beyond their public interface, and what to do without it.

Attributes and options of the compiler come and go. Each is tried once, on a small function; without
it everything is compiled as XLA does by itself, which is slower and right, and one warning says so.
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
"""Attributes that make a function called one kernel, see `kernels.one_kernel`."""


def set_metadata(**attributes: str | None) -> AbstractContextManager[None]:
    """Attributes for what is traced within the context; None takes one away."""
    metadata = import_module("jax.experimental.xla_metadata")
    context: AbstractContextManager[None] = metadata.set_xla_metadata(**attributes)
    return context


@cache
def has_one_kernel() -> bool:
    """Whether XLA on the CPU compiles a function with the attributes `ONE_KERNEL` as one kernel."""

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        with set_metadata(**dict.fromkeys(ONE_KERNEL)):
            return jax.lax.fori_loop(0, x[0].astype(int), lambda _, y: y * 0.5 + x, x)

    def outer(x: jax.Array) -> jax.Array:
        with set_metadata(**ONE_KERNEL):
            return inner(x)

    def is_called() -> bool:
        # Of loops over little memory XLA makes a call in any case.
        compiled = jax.jit(outer).lower(jax.ShapeDtypeStruct((100_000,), np.float32)).compile()
        text = compiled.as_text() or ""
        entry = text[text.index("ENTRY") :]
        return " call(" in entry and " while(" not in entry

    return works(is_called, f"the attributes {', '.join(ONE_KERNEL)} of the compiler")


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of some options of XLA those that it knows."""
    return {name: value for name, value in options.items() if _has_option(name, value)}


@cache
def _has_option(name: str, value: Any) -> bool:
    def compiles() -> bool:
        jax.jit(lambda x: x, compiler_options={name: value}).lower(_NUMBERS).compile()
        return True

    return works(compiles, f"the option {name} of the compiler")


def works(attempt: Callable[[], bool], what: str) -> bool:
    """Whether something of JAX, XLA or MJX does what it did; a warning if not.

    Args:
        attempt: Tries it; may also raise whatever it will.
        what: It is.
    """
    try:
        if attempt():
            return True
        reason = "it has no effect"
    except Exception as error:  # of whatever part of JAX or XLA has changed
        reason = f"{type(error).__name__}: {str(error)[:200]}"
    _LOGGER.warning(
        "jax %s does not have %s as it was (%s): this is slower now, with the same results",
        *(jax.__version__, what, reason),
    )
    return False
