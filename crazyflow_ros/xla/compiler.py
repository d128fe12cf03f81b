"""Use of features of JAX and XLA outside their public interface, and fallbacks.

Attributes and options of the compiler may change between versions. Each is tried once, on a small
function. If it fails, everything is compiled with XLA's defaults, which is slower but correct, and
one warning is logged.
"""

from __future__ import annotations

import io
import logging
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any

import jax
import numpy as np

_LOGGER = logging.getLogger("crazyflow_ros")

_NUMBERS = jax.ShapeDtypeStruct((3,), np.float32)

ONE_KERNEL = {"inlineable": "false", "xla_cpu_small_call": "true"}
"""Attributes with which a called function becomes one kernel, see `kernels.one_kernel`."""


def set_metadata(**attributes: str | None) -> AbstractContextManager[None]:
    """Set attributes for everything traced within the context; None removes one."""
    metadata = import_module("jax.experimental.xla_metadata")
    context: AbstractContextManager[None] = metadata.set_xla_metadata(**attributes)
    return context


@cache
def has_one_kernel() -> bool:
    """Return whether XLA on the CPU compiles a function with `ONE_KERNEL` to one kernel."""

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        with set_metadata(**dict.fromkeys(ONE_KERNEL)):
            return jax.lax.fori_loop(0, x[0].astype(int), lambda _, y: y * 0.5 + x, x)

    def outer(x: jax.Array) -> jax.Array:
        with set_metadata(**ONE_KERNEL):
            return inner(x)

    def is_called() -> bool:
        # XLA always calls loops over little memory.
        compiled = jax.jit(outer).lower(jax.ShapeDtypeStruct((100_000,), np.float32)).compile()
        text = compiled.as_text() or ""
        entry = text[text.index("ENTRY") :]
        return " call(" in entry and " while(" not in entry

    return works(is_called, f"the attributes {', '.join(ONE_KERNEL)} of the compiler")


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of XLA that it supports."""
    return {name: value for name, value in options.items() if _has_option(name, value)}


@cache
def _has_option(name: str, value: Any) -> bool:
    def compiles() -> bool:
        jax.jit(lambda x: x, compiler_options={name: value}).lower(_NUMBERS).compile()
        return True

    return works(compiles, f"the option {name} of the compiler")


def works(attempt: Callable[[], bool], what: str) -> bool:
    """Return whether a feature of JAX, XLA or MJX works as expected; log a warning if not.

    Args:
        attempt: Tries the feature; may raise any exception.
        what: Name of the feature.
    """
    try:
        if attempt():
            return True
        reason = "it has no effect"
    except Exception as error:  # from any part of JAX or XLA that has changed
        reason = f"{type(error).__name__}: {str(error)[:200]}"
    _LOGGER.warning(
        "jax %s no longer supports %s (%s): the simulation is slower, with the same results",
        *(jax.__version__, what, reason),
    )
    return False


class CacheEntries:
    """Entries of JAX's compilation cache: may be written late, and can be referred to.

    JAX takes a tenth of a second or more to serialise a large function, and holds the interpreter's
    lock meanwhile, so that no other Python thread runs. Postponed entries are found when the same
    function is compiled again. If JAX lacks the functions that this needs, it writes at once, and
    no entry can be referred to.
    """

    def __init__(self) -> None:
        self._is_late = False
        self._entries: dict[str, tuple[Any, ...]] = {}
        self._asked = threading.local()
        self._put: Callable[..., None] = lambda *_: None
        works(self._take_over, "the functions that write and read its cache")

    def _take_over(self) -> bool:
        cache: Any = import_module("jax._src.compilation_cache")
        self._put, get = cache.put_executable_and_time, cache.get_executable_and_time

        def put(key: str, *entry: Any) -> None:
            if self._is_late:
                self._entries[key] = entry
            else:
                self._put(key, *entry)

        def find(key: str, options: Any, backend: Any, devices: Any) -> Any:
            self._asked.entry = key, options.SerializeAsString(), [device.id for device in devices]
            if (entry := self._entries.get(key)) is None:
                return get(key, options, backend, devices)
            _, executable, _, seconds = entry
            return executable, seconds

        cache.put_executable_and_time, cache.get_executable_and_time = put, find
        return True

    def postpone(self) -> None:
        """Keep new entries in memory from now on."""
        self._is_late = True

    def write(self, within: float) -> None:
        """Write the entries, with JAX's warning for those that cannot be written.

        Args:
            within: Time [s] after which no further entry is started. Entries that took longest to
                compile come first.
        """
        deadline = time.monotonic() + within
        for key in sorted(self._entries, key=lambda key: -self._entries[key][-1]):
            if time.monotonic() >= deadline:
                return
            entry = self._entries.pop(key)
            try:
                self._put(key, *entry)
            except Exception as error:  # any error of the disk
                what = f"persistent compilation cache entry for {entry[0]!r}"
                reason = f"{type(error).__name__}: {error}"
                warnings.warn(f"Error writing {what}: {reason}", stacklevel=2)

    def compiled(self, make: Callable[[], Any]) -> tuple[Any, bytes | None]:
        """Compile a function.

        Args:
            make: Compiles the function, and no other function after it.

        Returns:
            Its result, and what `loaded` needs to load it without tracing it; None if JAX's cache
            is not in use.
        """
        self._asked.entry = None
        function = make()
        if (entry := self._asked.entry) is None:
            return function, None
        parts = function._executable._unloaded_executable, function.args_info, function.out_tree
        file = io.BytesIO()
        try:
            if function._params.const_args:
                raise NotImplementedError("functions with constants as arguments")
            _Pickler(file, entry).dump((*parts, function._no_kwargs))
        except Exception as error:  # from any part of JAX that has changed
            _LOGGER.warning("a compiled function cannot be kept: %s", str(error)[:200])
            return function, None
        return function, file.getvalue()

    @staticmethod
    def loaded(reference: bytes) -> Any:
        """Return a compiled function of an earlier process.

        Args:
            reference: Result of `compiled`. It is unpickled, and its entry of the cache is machine
                code, so both have to be files that only this user can write to.

        Raises:
            LookupError: JAX's cache has no such entry.
            Exception: Anything else, if JAX has changed, or if one of them is damaged.
        """
        executable, arguments, out_tree, no_kwargs = _Unpickler(io.BytesIO(reference)).load()
        return jax.stages.Compiled(executable.load(), [], arguments, out_tree, no_kwargs=no_kwargs)


class _Pickler(pickle.Pickler):
    """Pickles a compiled function, with the entry of JAX's cache instead of the code."""

    def __init__(self, file: io.BytesIO, entry: tuple[Any, ...]) -> None:
        super().__init__(file)
        self._entry = entry

    def persistent_id(self, value: Any) -> Any:
        """Replace what exists in one process only."""
        client: Any = import_module("jax._src.lib").xla_client
        if isinstance(value, client.LoadedExecutable | client.Executable):
            return "code", self._entry
        if isinstance(value, client.Device):
            return "device", value.id
        return ("client", None) if isinstance(value, client.Client) else None


class _Unpickler(pickle.Unpickler):
    """The inverse of `_Pickler`."""

    def persistent_load(self, pid: Any) -> Any:
        """Return what this process has instead."""
        kind, value = pid
        backend: Any = jax.devices()[0].client
        devices = {device.id: device for device in backend.devices()}
        if kind == "client":
            return backend
        if kind == "device":
            return devices[value]
        client: Any = import_module("jax._src.lib").xla_client
        cache: Any = import_module("jax._src.compilation_cache")
        key, options, ids = value
        options = client.CompileOptions.ParseFromString(options)
        places = client.DeviceList(tuple(devices[i] for i in ids))
        code, _ = cache.get_executable_and_time(key, options, backend, places)
        if code is None:
            raise LookupError(f"no entry {key}")
        return code
