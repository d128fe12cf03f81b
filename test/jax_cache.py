"""JAX's own cache of compiled code, which the tests use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache


@contextmanager
def without_jax_cache() -> Iterator[None]:
    """JAX finds nothing in its cache, and so compiles anew."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
        reset_cache()
