"""Settings of the whole test run."""

import os
import tempfile
from pathlib import Path

import jax
import pytest
from hypothesis import settings

import crazyflow_ros  # noqa: F401  before tests import MuJoCo, which reads what it draws with

_CACHE = "CRAZYFLOW_ROS_TEST_CACHE"

# As the node sets it; for small calls it is faster, and the tests run what the node runs.
jax.config.update("jax_cpu_enable_async_dispatch", False)


# make test ARGS="--hypothesis-profile=thorough test/test_random_calls.py"
settings.register_profile("quick", max_examples=8, deadline=None, database=None)
settings.register_profile("thorough", max_examples=10_000, deadline=None, database=None)
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """Tests build the same simulations again and again: all processes compile each of them once.

    Nodes that tests start share them too, by their environment.
    """
    if _CACHE not in os.environ:  # else a worker of pytest-xdist
        folder = tempfile.TemporaryDirectory(prefix="crazyflow_ros_test_")
        config.add_cleanup(folder.cleanup)
        os.environ[_CACHE] = folder.name
    jax.config.update("jax_compilation_cache_dir", str(Path(os.environ[_CACHE]) / "crazyflow_ros"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
