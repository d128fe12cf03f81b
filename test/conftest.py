"""Settings of the whole test run."""

from pathlib import Path

import jax
import pytest

# As the node sets it; for small calls it is faster, and the tests run what the node runs.
jax.config.update("jax_cpu_enable_async_dispatch", False)


@pytest.fixture(scope="session", autouse=True)
def _compile_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests build the same simulations again and again: compile each of them once."""
    cache: Path = tmp_path_factory.mktemp("jax")
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
