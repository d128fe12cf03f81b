"""Results of tracing and compiling, kept in files so that the next start does not repeat either.

JAX finds compiled code by the traced function, and tracing takes longer than loading the code.
Here results are found by what the trace depends on: this package's source, the versions of the
compilers, the processor, JAX's configuration, and what the caller names. Nothing is kept before
`keep_in`.

Files are unpickled, which can execute anything, as the code in JAX's cache can. So a file is only
read if it belongs to this user or the administrator and nobody else can write to it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file
from crazyflow_ros.xla.compiler import CacheEntries

_PREFIX = "kept-"
_MOST_FILES, _MOST_BYTES = 200, 100_000_000
_WHERE = ("jax_compilation_cache", "jax_persistent_cache")  # change no compiled code

_store: _Store | None = None


Tell = Callable[[str], object]


def keep_in(folder: Path, entries: CacheEntries, unread: Tell, unwritten: Tell) -> None:
    """Keep results from now on.

    Args:
        folder: JAX's compilation cache.
        entries: Its entries.
        unread: Receives a message about each file that cannot be used.
        unwritten: Receives the reason why a file cannot be written.
    """
    global _store
    _store = _Store(folder, entries, unread, unwritten)


def find(*what: object) -> Any:
    """Return the result that is kept for a description, or None.

    Args:
        what: Everything that the result depends on; the `repr` must show any difference.
    """
    return None if _store is None else _store.find(what, pickle.loads)


def keep(result: object, *what: object) -> None:
    """Keep a result that can be pickled, if results are kept; see `find`."""
    if _store is not None:
        _store.keep(what, pickle.dumps(result))


def compiled(make: Callable[[], Any], *what: object) -> Any:
    """Return a compiled function: the one that is kept for a description, or a new one.

    Args:
        make: Compiles it.
        what: Everything that the function depends on, see `find`.
    """
    if _store is None:
        return make()
    if (found := _store.find(what, CacheEntries.loaded)) is not None:
        return found
    function, reference = _store.entries.compiled(make)
    if reference is not None:
        _store.keep(what, reference)
    return function


class _Store:
    def __init__(self, folder: Path, entries: CacheEntries, unread: Tell, unwritten: Tell) -> None:
        self.entries = entries
        self._folder, self._unread, self._unwritten = folder, unread, unwritten

    def find(self, what: object, load: Callable[[bytes], Any]) -> Any:
        path = self._path(what)
        try:
            with open_file(path, _MOST_BYTES) as file:
                status = os.fstat(file.fileno())
                if status.st_uid not in (os.geteuid(), 0):
                    raise ValueError(f"it belongs to another user ({status.st_uid})")
                if status.st_mode & 0o022:
                    raise ValueError("other users can write to it")
                content = file.read()
            digest, result = content[:32], content[32:]
            if hashlib.sha256(result).digest() != digest:
                raise ValueError("it is damaged")
            found = load(result)
            os.utime(path)  # the least used are removed first
        except (FileNotFoundError, LookupError):
            return None
        except Exception as error:
            self._unread(f"{path} is not used and is replaced: {str(error)[:200]}")
            return None
        return found

    def keep(self, what: object, result: bytes) -> None:
        path = self._path(what)
        try:
            write_file(path, hashlib.sha256(result).digest() + result, mode=0o600)
            self._remove_oldest()
        except OSError as error:
            self._unwritten(str(error.strerror))

    def _path(self, what: object) -> Path:
        key = repr((surroundings(), _configuration(), what))
        return self._folder / f"{_PREFIX}{hashlib.sha256(key.encode()).hexdigest()}"

    def _remove_oldest(self) -> None:
        ages = {}
        for path in self._folder.glob(f"{_PREFIX}*"):
            with suppress(FileNotFoundError):
                ages[path] = path.stat().st_mtime
        for path in sorted(ages, key=lambda path: -ages[path])[_MOST_FILES:]:
            path.unlink(missing_ok=True)


def _configuration() -> tuple[object, ...]:
    """JAX's configuration, in which threads may differ in precision, and the devices."""
    values = jax.config.values.items()
    fixed = sorted((k, v) for k, v in values if not k.startswith(_WHERE))
    return fixed, jax.dtypes.canonicalize_dtype(float), str(jax.devices())


@cache
def surroundings() -> tuple[object, ...]:
    """Versions, processor, XLA's flags and the source of this package."""
    versions = [version(name) for name in ("jax", "jaxlib", "numpy")]
    source, package = hashlib.sha256(), Path(__file__).parents[1]
    for pattern in ("*.py", "*.toml"):
        for file in sorted(package.rglob(pattern)):
            source.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    flags = os.environ.get("XLA_FLAGS"), os.environ.get("LIBTPU_INIT_ARGS")
    return platform.python_version(), versions, _processor(), flags, source.hexdigest()


def _processor() -> object:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        return [x for x in lines if x.startswith(("model name", "flags", "Features", "CPU part"))]
    return platform.machine()
