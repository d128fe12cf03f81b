"""Settings of the whole test run."""

import ctypes
import gc
import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import crazyflow_ros  # noqa: F401  before tests import MuJoCo, which reads what it draws with

try:
    import jax
    from hypothesis import settings
    from jax_cache import NOTHING_KEPT, keep_by_jax

    from crazyflow_ros.xla.compiled_files import cache_folder, open_cache
except ModuleNotFoundError:  # ROS's own Python, which runs the tests of launch files
    jax = None

_LARGEST_CACHE = 2 << 30  # bytes
_LARGEST_WORKER = 1 << 30  # bytes
_LEAST_GROWTH = 1 << 28  # bytes that a worker uses more before it forgets again

if jax and not {"CRAZYFLOW_PYTHON", "CRAZYFLOW_ROS_SOAK"} & set(os.environ):
    # The comparison with Crazyflow and long runs need what users have. Others, and the processes
    # that they start, run most code once or twice: to optimise it takes longer than all else.
    flags = os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=0"
    os.environ["XLA_FLAGS"] = " ".join(flags).strip()
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
    """Tests build the same simulations again and again: a machine compiles most of them once.

    A running simulation is kept as in a simulator of the user, whose folder all workers share, and
    the processes that tests start, by their environment. JAX's cache keeps other functions, see
    `jax_cache`.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("COLUMNS", None)  # which workers of pytest-xdist have, though without a terminal
    if not jax or NOTHING_KEPT:
        return
    if not hasattr(config, "workerinput"):  # else a worker of pytest-xdist, which inherits it
        folder = cache_folder().with_name("crazyflow_ros_test")
        os.environ["XDG_CACHE_HOME"] = str(folder)
        _forget_oldest(_jax_cache())
    open_cache(print)
    keep_by_jax(_jax_cache())


@pytest.fixture(autouse=True)
def no_signals_stay_blocked() -> Iterator[None]:
    """All processes that later tests start would inherit that, and not end."""
    yield
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGINT, signal.SIGTERM}
    assert not blocked, f"the test leaves signals blocked: {blocked}"


@pytest.fixture(scope="module", autouse=True)
def environment_of_other_modules() -> Iterator[None]:
    """What a client in this process sets for its middleware is not for tests after it."""
    with _environment_restored():
        yield


@pytest.fixture(autouse=True)
def environment_of_other_tests() -> Iterator[None]:
    with _environment_restored():
        yield


@pytest.fixture
def double_precision() -> Iterator[None]:
    """Of what JAX computes in the test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module", autouse=True)
def forgotten_at() -> Iterator[list[int]]:
    """Memory [bytes] above which a worker forgets what it has compiled: gigabytes of a whole run.

    Within a file, what its fixtures hold stays, and forgetting again gains nothing until more has
    come.
    """
    limit = [max(_LARGEST_WORKER, _resident() + _LEAST_GROWTH)]
    yield limit
    _forget_above(_LARGEST_WORKER)


@pytest.fixture(autouse=True)
def memory_is_returned(forgotten_at: list[int]) -> Iterator[None]:
    yield
    if _forget_above(forgotten_at[0]):
        forgotten_at[0] = max(_LARGEST_WORKER, _resident() + _LEAST_GROWTH)


def _forget_above(limit: int) -> bool:
    """Forget what JAX has compiled if this process uses more memory [bytes]; return whether."""
    if not jax or _resident() <= limit:
        return False
    jax.clear_caches()
    gc.collect()
    with suppress(OSError, AttributeError):  # of another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return True


@contextmanager
def _environment_restored() -> Iterator[None]:
    before = os.environ.copy()
    yield
    os.environ.clear()
    os.environ.update(before)


def _resident() -> int:
    """Memory that this process uses [bytes]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _jax_cache() -> Path:
    return cache_folder().with_name("jax")


def _forget_oldest(folder: Path) -> None:
    """Remove what was compiled first, where all of it has become too large."""
    entries = sorted(folder.glob("*-cache"), key=lambda entry: entry.stat().st_mtime, reverse=True)
    sizes = itertools.accumulate(entry.stat().st_size for entry in entries)
    for entry, size in zip(entries, sizes):
        if size > _LARGEST_CACHE:
            entry.unlink(missing_ok=True)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of garbage collection: all of it stays anyway."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs in `make soak`."""
    if "CRAZYFLOW_ROS_SOAK" not in os.environ:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
