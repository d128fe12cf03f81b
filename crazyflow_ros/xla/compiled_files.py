"""What was traced and compiled, in files from which the next start loads it.

Results of tracing are found by what the trace depends on: this package's source, the versions of
the compilers, the processor, JAX's configuration, and what the caller names. Compiled code is found
by the traced computation, so that a change of the source that keeps the computation compiles
nothing. JAX's own cache would find code only after tracing, which takes longer than loading it.

Files are unpickled and their code is executed, so a file is only read if it belongs to this user or
the administrator and nobody else can write to it. Files are written whole or not at all, so that
several processes can share the folder.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import stat
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jax
from jax.experimental import serialize_executable
from jax.stages import Compiled, Lowered, Wrapped

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file
from crazyflow_ros.xla.code_description import CodeDescription
from crazyflow_ros.xla.fingerprint import configuration, machine, source
from crazyflow_ros.xla.machine_code import described
from crazyflow_ros.xla.object_code import CannotLoad

T = TypeVar("T")
Warn = Callable[[str], object]

_PREFIX = "compiled-"
_LARGEST, _MOST_BYTES = 100_000_000, 500_000_000  # of one file, of all
_MOST_LOADED = 8  # that stay loaded for a second use
_WRITING = 0.8  # s for postponed code: a process must end soon after a signal
_HIT = "/jax/compilation_cache/cache_hits"  # JAX's event


@dataclass
class KeptFunction:
    """A compiled function."""

    function: Compiled
    description: CodeDescription | None = None
    """What XLA says about its code, if it consists of kernels for the CPU; known when the function
    has been stored. To ask XLA for it takes as long."""

    def __call__(self, *args: Any) -> Any:
        """Call the function by JAX."""
        return self.function(*args)


class CompiledFiles:
    """A folder of compiled code.

    Args:
        folder: The folder; created if missing.
        warn: Receives one message about the folder at most, and one about each file that cannot be
            used.

    Attributes:
        folder: The folder; None if it is missing or others can write to it, and nothing is kept.
        n_compiled: Number of functions that this process has compiled.
    """

    def __init__(self, folder: Path, warn: Warn) -> None:
        self._warn = warn
        self._has_warned = self._is_postponed = False
        self._loaded: dict[str, KeptFunction] = {}  # the last used come last
        self._loaded_lock = threading.Lock()
        self._unwritten: dict[
            str, tuple[float, KeptFunction]
        ] = {}  # with the time [s] of compiling
        self.n_compiled = 0
        problem = _problem(folder)
        self.folder = None if problem else folder
        if problem:
            self._warn_once(folder, problem)

    def traced(self, make: Callable[[], T], *what: object) -> T:
        """Return a result of tracing: from a file, or a new one.

        Args:
            make: Makes the result, which can be pickled and is not None.
            *what: Everything that the result depends on besides this package; the `repr` must show
                any difference.
        """
        name = _name(source(), what)
        found: T | None = self._read(name, pickle.loads)
        if found is None:
            found = make()
            self._write(name, pickle.dumps(found))
        return found

    def compiled(self, lower: Callable[[], Lowered], *what: object) -> KeptFunction:
        """Return a compiled function: of this process, from a file, or a new one.

        Args:
            lower: Traces the function.
            *what: Everything that the function depends on, see `traced`; if nothing is given, the
                function is traced each time.
        """
        lower = cache(lower)

        def code() -> str:
            return _name("described code with trees", lower().as_text())

        name = self.traced(code, "name of code", what) if what else code()
        program = self._loaded.get(name)
        if program is None:
            program = self._read(name, _loaded)
        if program is None:
            program = self._compile(lower(), name)
        self._keep_loaded(name, program)
        if not self._is_postponed:
            self._write_programs(math.inf)
        return program

    def postpone(self) -> None:
        """Write new code in `close` from now on.

        Serialising holds the interpreter's lock for a tenth of a second or more, in which no other
        Python thread runs.
        """
        self._is_postponed = True

    def close(self) -> None:
        """Write postponed code within the limit of time, first what took longest to compile."""
        self._write_programs(_WRITING)

    def _compile(self, lowered: Lowered, name: str) -> KeptFunction:
        began = time.monotonic()
        function, is_new = newly_compiled(lowered)
        program = KeptFunction(function)
        self.n_compiled += 1
        if is_new and self.folder is not None:
            self._unwritten[name] = time.monotonic() - began, program
        return program

    def _keep_loaded(self, name: str, program: KeptFunction) -> None:
        with self._loaded_lock:
            self._loaded.pop(name, None)
            self._loaded[name] = program
            idle = [other for other in self._loaded if other not in self._unwritten]
            for other in idle[:-_MOST_LOADED]:
                del self._loaded[other]

    def _write_programs(self, within: float) -> None:
        deadline = time.monotonic() + within
        for name, (_, program) in sorted(self._unwritten.items(), key=lambda item: -item[1][0]):
            if time.monotonic() >= deadline:
                return
            if self._unwritten.pop(name, None) is None:
                continue  # another thread writes it
            try:
                content = _serialised(program)
            except Exception as error:  # from any part of JAX that has changed
                self._warn(f"a compiled function cannot be stored: {str(error)[:200]}")
            else:
                self._write(name, content)

    def _read(self, name: str, load: Callable[[bytes], T]) -> T | None:
        if self.folder is None:
            return None
        path = self.folder / f"{_PREFIX}{name}"
        try:
            with open_file(path, _LARGEST) as file:
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
        except FileNotFoundError:
            return None
        except Exception as error:
            self._warn(f"{path} is not used and is replaced: {str(error)[:200]}")
            return None
        with suppress(OSError):
            os.utime(path)  # the least used are removed first
        return found

    def _write(self, name: str, result: bytes) -> None:
        if self.folder is None:
            return
        content = hashlib.sha256(result).digest() + result
        try:
            write_file(self.folder / f"{_PREFIX}{name}", content, mode=0o600)
            _remove_least_used(self.folder)
        except OSError as error:
            self._warn_once(self.folder, f"cannot be written ({error.strerror})")

    def _warn_once(self, folder: Path, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"the compilation cache {folder} {problem}: missing code is compiled at each "
                "start. Set XDG_CACHE_HOME to use another folder"
            )


def _problem(folder: Path) -> str:
    """Create a folder if it is missing, and return why it is not to be used; empty if it is."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        return f"cannot be created ({error.strerror})"
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({status.st_uid}) and is not used"
    if status.st_mode & stat.S_IWOTH:
        return "is writable for everybody and is not used"
    return ""


def _name(*what: object) -> str:
    key = repr((machine(), configuration(), what))
    return hashlib.sha256(key.encode()).hexdigest()


def _remove_least_used(folder: Path) -> None:
    files = []
    for path in folder.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    size = 0
    for _, bytes_of_file, path in sorted(files, reverse=True):
        size += bytes_of_file
        if size > _MOST_BYTES:
            path.unlink(missing_ok=True)


def newly_compiled(lowered: Lowered) -> tuple[Compiled, bool]:
    """Compile, and return whether the code is new.

    Code from JAX's own cache, which a user may have switched on, cannot be serialised again: its
    object files are missing.
    """
    thread, hits = threading.get_ident(), []

    def note(event: str, **_: object) -> None:
        if event == _HIT and threading.get_ident() == thread:
            hits.append(event)

    jax.monitoring.register_event_listener(note)
    try:
        return lowered.compile(), not hits
    finally:
        jax.monitoring.unregister_event_listener(note)


def _serialised(program: KeptFunction) -> bytes:
    function = program.function
    shardings = jax.tree.leaves(function.input_shardings)
    devices = {device.id for sharding in shardings for device in sharding.device_set}
    with suppress(CannotLoad):
        program.description = described(function)
    code, *trees = serialize_executable.serialize(function)
    # Of PyTreeDef, pickles may refer to freed memory (jaxlib 0.10): its fields that are no arrays.
    examples = [tree.unflatten(range(tree.num_leaves)) for tree in trees]
    content = code, examples, devices, program.description
    return zlib.compress(pickle.dumps(content), level=1)


def _loaded(content: bytes) -> KeptFunction:
    code, examples, ids, description = pickle.loads(zlib.decompress(content))
    devices = [device for device in jax.devices() if device.id in ids]
    in_tree, out_tree = map(jax.tree.structure, examples)
    function: Compiled = serialize_executable.deserialize_and_load(
        code, in_tree, out_tree, execution_devices=devices
    )
    return KeptFunction(function, description)


_files: CompiledFiles | None = None


def cache_folder() -> Path:
    """Return the user's folder of compiled code."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "crazyflow_ros"


def open_cache(warn: Warn) -> CompiledFiles:
    """Let this process load and keep compiled code in the user's folder.

    Args:
        warn: Receives the messages of `CompiledFiles`.
    """
    global _files
    _files = CompiledFiles(cache_folder(), warn)
    return _files


def opened() -> CompiledFiles | None:
    """Return the result of `open_cache`; None before it is called."""
    return _files


def traced(make: Callable[[], T], *what: object) -> T:
    """Return `CompiledFiles.traced` of the open cache; without one, a new result."""
    return make() if _files is None else _files.traced(make, *what)


def compiled(lower: Callable[[], Lowered], *what: object) -> KeptFunction:
    """Return `CompiledFiles.compiled` of the open cache; without one, a new function."""
    return KeptFunction(lower().compile()) if _files is None else _files.compiled(lower, *what)


def kept_function(function: Wrapped, fixed: Any) -> Callable[..., Any]:
    """Return a function whose code the open cache keeps, for arguments of any structure and shapes.

    Args:
        function: A result of `jax.jit`, which depends on nothing but its arguments and the source
            of this package.
        fixed: Its first argument, a pytree of arrays; the others are arguments of the result.
    """
    known: dict[object, Callable[..., Any]] = {}
    of_fixed = _structure(fixed)

    def call(*args: Any) -> Any:
        if _files is None:
            return function(fixed, *args)
        own = _structure(args)
        if own not in known:
            what = getattr(function, "__qualname__", ""), of_fixed, own
            known[own] = compiled(lambda: function.lower(fixed, *args), *what)
        return known[own](fixed, *args)

    return call


def _structure(tree: Any) -> tuple[object, tuple[object, ...]]:
    """Return what compiled code depends on of arguments."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((x.shape, x.dtype) for x in leaves)
