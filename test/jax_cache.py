"""What of compiled code the tests keep, in JAX's own cache.

What the package itself keeps, as the code of a running simulation, could not be kept if it came
from there. So it does not: the tests find it as users do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from jax.stages import Compiled, Lowered

from crazyflow_ros.utils import enable_cache
from crazyflow_ros.xla import compiled_files

VARIABLE = "CRAZYFLOW_ROS_TEST_KEEPS"
"""Set in the environment to "nothing", it lets the tests run without any cache."""
NOTHING_KEPT = os.environ.get(VARIABLE) == "nothing"


def keep_by_jax(folder: Path) -> None:
    """Let JAX keep in a folder what it compiles, but for what the package keeps itself."""
    newly_compiled = compiled_files.newly_compiled

    def apart(lowered: Lowered) -> tuple[Compiled, bool]:
        if jax.config.jax_compilation_cache_dir != str(folder):  # a test has a cache of its own
            return newly_compiled(lowered)
        with without_jax_cache():
            return newly_compiled(lowered)

    enable_cache(folder)
    compiled_files.newly_compiled = apart


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
