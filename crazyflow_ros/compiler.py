"""What is asked of JAX and XLA beyond their public interface, and what to do without it.

Attributes and options of the compiler come and go. Each is tried once, on a small function; without
it everything is compiled as XLA does by itself, which is slower and right, and one warning says so.
"""

from __future__ import annotations

import logging
import time
import warnings
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


class LateEntries:
    """What JAX would write into its folder of compiled code at once, kept to be written later.

    To make an entry of a large function takes JAX a tenth of a second and more, in which it holds
    the interpreter's lock: no other thread that runs Python gets on. What is kept is found without
    the folder when it is compiled once more. Without what this needs of JAX, all is written at
    once.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Any, ...]] = {}
        self._put: Callable[..., None] = lambda *_: None
        works(self._take_over, "the functions that write and read its cache")

    def _take_over(self) -> bool:
        cache: Any = import_module("jax._src.compilation_cache")
        put, get = cache.put_executable_and_time, cache.get_executable_and_time

        def keep(key: str, *entry: Any) -> None:
            self._entries[key] = entry

        def find(key: str, *rest: Any) -> Any:
            if (entry := self._entries.get(key)) is None:
                return get(key, *rest)
            _, executable, _, seconds = entry
            return executable, seconds

        self._put = put
        cache.put_executable_and_time, cache.get_executable_and_time = keep, find
        return True

    def write(self, within: float) -> None:
        """Write them, and warn of what cannot be written as JAX does.

        Args:
            within: Time [s] after which none is begun any more. What took longest to compile comes
                first.
        """
        deadline = time.monotonic() + within
        for key in sorted(self._entries, key=lambda key: -self._entries[key][-1]):
            if time.monotonic() >= deadline:
                return
            entry = self._entries.pop(key)
            try:
                self._put(key, *entry)
            except Exception as error:  # whatever a disk may do
                what = f"persistent compilation cache entry for {entry[0]!r}"
                reason = f"{type(error).__name__}: {error}"
                warnings.warn(f"Error writing {what}: {reason}", stacklevel=2)
