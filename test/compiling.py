"""How functions of tests are compiled."""

from __future__ import annotations

from jax.stages import Compiled, Lowered
from jax_cache import without_jax_cache

QUICKLY = {"xla_backend_optimization_level": 0}
"""Options of XLA for what is called once or twice, such as derivatives: JAX makes them while it
traces, and optimised machine code of them takes several times as long to compile."""


def compile_quickly(lowered: Lowered) -> tuple[Compiled, bool]:
    """Take the place of `compiled_files.newly_compiled`, for tests with a folder of their own."""
    with without_jax_cache():
        return lowered.compile(compiler_options=QUICKLY), True
