"""Settings of the whole test run."""

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crazyflow_ros  # noqa: F401  before tests import MuJoCo, which reads what it draws with

try:
    import jax
    from hypothesis import settings

    from crazyflow_ros.xla import compiled_files
    from crazyflow_ros.xla.code_cache import ENTRIES, CodeCache, cache_folder
except ModuleNotFoundError:  # ROS's own Python, which runs the tests of launch files
    jax = None

_LARGEST_CACHE = 2 << 30  # bytes

# The longest first, so that all workers end at about the same time.
_LONGEST = (
    "test_derivatives",
    "test_replay",
    "test_cflib",
    "test_running",
    "test_examples",
    "test_floor",
    "test_collisions",
    "test_client",
    "test_code_cache",
    "test_kept",
    "test_governor",
    "test_node",
    "test_process_faults",
    "test_lock_step",
    "test_hostile",
    "test_conformance",
    "test_flight_services",
    "test_campaign",
    "test_sensor_topics",
    "test_controllers",
    "test_sharding",
    "test_first_principles",
    "test_too_much",
    "test_demo",
    "test_kernels",
    "test_topic_hardware",
    "test_process",
    "test_checkpoint_file",
    "test_blocks",
    "test_pipeline",
    "test_random_calls",
    "test_preparation",
    "test_supervisor",
    "test_streamed",
    "test_recorder",
    "test_disturbances",
)

if jax:
    # As the node sets it; for small calls it is faster, and the tests run what the node runs.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    # make test ARGS="--hypothesis-profile=thorough test/sim/test_random_calls.py"
    often = {"deadline": None, "database": None}
    settings.register_profile("quick", max_examples=8, derandomize=True, **often)
    settings.register_profile("thorough", max_examples=10_000, **often)
    settings.load_profile("quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors: tests that start processes often wait for them."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    """Tests build the same simulations again and again: a machine compiles each of them once.

    All processes that tests start share them, too, by their environment.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not jax:
        return
    if not hasattr(config, "workerinput"):  # else a worker of pytest-xdist, which inherits it
        folder = cache_folder().with_name("crazyflow_ros_test")
        os.environ["XDG_CACHE_HOME"] = str(folder)
        _forget_oldest(cache_folder())
    cache = CodeCache(cache_folder(), print)
    config.add_cleanup(cache.close)


def _forget_oldest(folder: Path) -> None:
    """Remove what was compiled first, where all of it has become too large."""
    entries = sorted(folder.glob(ENTRIES), key=lambda entry: entry.stat().st_mtime, reverse=True)
    sizes = itertools.accumulate(entry.stat().st_size for entry in entries)
    for entry, size in zip(entries, sizes):
        if size > _LARGEST_CACHE:
            entry.unlink(missing_ok=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs in `make soak`, and start with the files that take longest."""
    if "CRAZYFLOW_ROS_SOAK" not in os.environ:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    places = {name: i for i, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session", autouse=True)
def traced_once() -> Any:
    """Let simulations of the same kind share what is traced and compiled for the first of them.

    The folder of compiled code saves XLA's work, and not that of tracing the same functions.
    """
    if not jax:
        yield
        return
    memory: dict[str, Any] = {}

    def key(what: tuple[object, ...]) -> str:
        return repr((what, jax.config.jax_enable_x64))

    def find(*what: object) -> Any:
        return found(*what) if compiled_files._store else memory.get(key(what))

    def keep(result: object, *what: object) -> None:
        memory[key(what)] = result
        kept_before(result, *what)

    def compiled(make: Callable[[], Any], *what: object) -> Any:
        if compiled_files._store:
            return compiled_before(make, *what)
        if key(what) not in memory:
            memory[key(what)] = make()
        return memory[key(what)]

    found, kept_before, compiled_before = (
        compiled_files.find,
        compiled_files.keep,
        compiled_files.compiled,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_files, "find", find)
        patch.setattr(compiled_files, "keep", keep)
        patch.setattr(compiled_files, "compiled", compiled)
        yield
