"""Results of tracing and compilation, in files from which the next start loads them.

Results of tracing are found by what the trace depends on: this package's source, the versions of
the compilers, the processor, JAX's configuration, and what the caller names. Compiled code is found
by the traced computation with its arguments, so that a change of the source that keeps them
compiles nothing. JAX's own cache would find code only after tracing, which takes longer than
loading it.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable
from jax.stages import Compiled, Lowered

from crazyflow_ros.xla.fingerprint import configuration, machine, source
from crazyflow_ros.xla.kept_files import KeptFiles, Warn

T = TypeVar("T")

_MOST_LOADED = 8  # functions that stay loaded for a second use
_WRITING = 0.8  # s for postponed code: a process must end soon after a signal
_MOST_UNWRITTEN = 12  # functions, more than can be written in that time; each takes some 20 MB
_HIT = "/jax/compilation_cache/cache_hits"  # JAX's event


class CompiledFiles:
    """A folder of compiled code.

    Args:
        folder: The folder; created if missing.
        warn: Receives the messages of `KeptFiles`.

    Attributes:
        folder: See `KeptFiles`.
        n_compiled: Number of functions that this process has compiled.
    """

    def __init__(self, folder: Path, warn: Warn) -> None:
        self._warn, self._files = warn, KeptFiles(folder, warn)
        self.folder = self._files.folder
        self._is_postponed = False
        self._loaded: dict[str, Compiled] = {}  # the last used come last
        self._loaded_lock = threading.Lock()
        self._unwritten: dict[str, tuple[float, Compiled]] = {}  # with the time [s] of compiling
        self.n_compiled = 0

    def traced(self, make: Callable[[], T], *what: object) -> T:
        """Return a result of tracing: from a file, or a new one.

        Args:
            make: Makes the result, which can be pickled and is not None.
            *what: Everything that the result depends on besides this package; the `repr` must show
                any difference.
        """
        name = _name(source(), what)
        found: T | None = self._files.read(name, pickle.loads)
        if found is None:
            found = make()
            self._files.write(name, pickle.dumps(found))
        return found

    def compiled(
        self,
        make: Callable[[], Callable[..., Any]],
        arguments: Sequence[Any],
        *what: object,
        **options: Any,
    ) -> Compiled:
        """Return a compiled function: of this process, from a file, or a new one.

        Args:
            make: Returns the function to compile.
            arguments: Its arguments; only their structure, shapes, dtypes and devices matter.
            *what: Everything else that the function depends on, see `traced`; if nothing is given,
                the function is traced each time.
            **options: Of `jax.jit`.
        """
        given = structure(arguments), options
        lowered = cache(lambda: _lowered(make(), arguments, options))

        def code() -> str:
            return _name("executable", given, lowered().out_tree, lowered().as_text())

        name = self.traced(code, "name of code", given, what) if what else code()
        program = self._loaded.get(name)
        if program is None:
            program = self._files.read(name, _loaded)
        if program is None:
            program = self._compile(lowered(), name)
        self._keep_loaded(name, program)
        if not self._is_postponed:
            self._write_programs(math.inf)
        return program

    def postpone(self) -> None:
        """Write new code in `close` from now on.

        Serialising holds the interpreter's lock for a tenth of a second or more, in which no other
        Python thread runs. More code than `close` could write in time is dropped.
        """
        self._is_postponed = True

    def close(self) -> None:
        """Write postponed code within a time limit, beginning with the slowest compilations."""
        self._write_programs(_WRITING)

    def _compile(self, lowered: Lowered, name: str) -> Compiled:
        began = time.monotonic()
        function, is_new = newly_compiled(lowered)
        self.n_compiled += 1
        if is_new and self.folder is not None:
            self._unwritten[name] = time.monotonic() - began, function
            for other in self._slowest_first()[_MOST_UNWRITTEN:]:
                self._unwritten.pop(other, None)
        return function

    def _slowest_first(self) -> list[str]:
        """Names of the functions to write, beginning with the slowest compilations."""
        times = {name: seconds for name, (seconds, _) in self._unwritten.copy().items()}
        return sorted(times, key=times.__getitem__, reverse=True)

    def _keep_loaded(self, name: str, program: Compiled) -> None:
        with self._loaded_lock:
            self._loaded.pop(name, None)
            self._loaded[name] = program
            idle = [other for other in self._loaded if other not in self._unwritten]
            for other in idle[:-_MOST_LOADED]:
                del self._loaded[other]

    def _write_programs(self, within: float) -> None:
        deadline = time.monotonic() + within
        for name in self._slowest_first():
            if time.monotonic() >= deadline:
                return
            if (unwritten := self._unwritten.pop(name, None)) is None:
                continue  # another thread writes it
            try:
                content = _serialised(unwritten[1])
            except Exception as error:  # from any part of JAX that has changed
                self._warn(f"a compiled function cannot be stored: {str(error)[:200]}")
            else:
                self._files.write(name, content)


def _name(*what: object) -> str:
    key = repr((machine(), configuration(), what))
    return hashlib.sha256(key.encode()).hexdigest()


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


def _serialised(function: Compiled) -> bytes:
    shardings = jax.tree.leaves(function.input_shardings)
    devices = {device.id for sharding in shardings for device in sharding.device_set}
    code, *trees = serialize_executable.serialize(function)
    # Pickles of PyTreeDef may refer to freed memory (jaxlib 0.10), in fields that are no arrays.
    examples = [tree.unflatten(range(tree.num_leaves)) for tree in trees]
    content = code, examples, devices
    return zlib.compress(pickle.dumps(content), level=1)


def _loaded(content: bytes) -> Compiled:
    code, examples, ids = pickle.loads(zlib.decompress(content))
    devices = [device for device in jax.devices() if device.id in ids]
    in_tree, out_tree = map(jax.tree.structure, examples)
    function: Compiled = serialize_executable.deserialize_and_load(
        code, in_tree, out_tree, execution_devices=devices
    )
    return function


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


def compiled(
    make: Callable[[], Callable[..., Any]],
    arguments: Sequence[Any],
    *what: object,
    **options: Any,
) -> Compiled:
    """Return `CompiledFiles.compiled` of the open cache; without one, a new function."""
    if _files is None:
        return _lowered(make(), arguments, options).compile()
    return _files.compiled(make, arguments, *what, **options)


def kept_function(function: Callable[..., Any], fixed: Any) -> Callable[..., Any]:
    """Return a function whose code the open cache keeps, for arguments of any structure and shapes.

    Args:
        function: It depends on nothing but its arguments and the source of this package.
        fixed: Its first argument, a pytree of arrays; the others are arguments of the result.
    """
    known: dict[object, Callable[..., Any]] = {}
    unkept = jax.jit(function)

    def call(*args: Any) -> Any:
        if _files is None:
            return unkept(fixed, *args)
        own = structure(args)
        if own not in known:
            known[own] = compiled(lambda: function, (fixed, *args), function.__qualname__)
        return known[own](fixed, *args)

    return call


def structure(tree: Any) -> tuple[object, ...]:
    """Return the properties of arguments that compiled code depends on."""
    leaves, treedef = jax.tree.flatten(tree)
    devices = {d.id for x in leaves if isinstance(x, jax.Array) for d in x.devices()}
    return treedef, tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves), (*sorted(devices),)


def _lowered(
    function: Callable[..., Any], arguments: Sequence[Any], options: dict[str, Any]
) -> Lowered:
    """Return a traced function, whose text also has the arguments that it does not use.

    Without them, functions that use different ones could have the same text.
    """
    return jax.jit(function, keep_unused=True, **options).lower(*arguments)
