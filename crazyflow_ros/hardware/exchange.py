"""States and commands exchanged with controllers from within a compiled loop.

The work is done by hardware/src/exchange.cpp, a function that XLA calls between two control
periods. It is compiled where there is a C++ compiler when this package is installed; without it
everything works, period by period in Python.
"""

from __future__ import annotations

import ctypes
import sysconfig
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import cast

import jax
import numpy as np
from jax import Array

from crazyflow_ros.compiler import works
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.hardware.commands import Commands
from crazyflow_ros.hardware.shared_memory import SharedMemory

_LIBRARY = Path(__file__).with_name(f"_exchange{sysconfig.get_config_var('EXT_SUFFIX')}")
_TARGET = "crazyflow_ros_exchange"
_PATIENCE = 20_000_000  # ns of waiting in one loop; after it Python sees what is the matter


class _Loop(ctypes.Structure):
    """Twin of `Loop` in hardware/src/exchange.cpp, which explains it."""

    _fields_ = (
        ("segment", ctypes.c_void_p),
        ("rotor_angle", ctypes.c_void_p),
        ("rotor_velocity", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("range", ctypes.c_void_p),
        ("level", ctypes.c_void_p),
        ("most", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("sessions", ctypes.c_void_p),
        ("tick", ctypes.c_uint64),
        ("epoch", ctypes.c_uint64),
        ("patience", ctypes.c_int64),
        ("left", ctypes.c_uint64),
        ("done", ctypes.c_uint64),
        ("rpm", ctypes.c_double),
        ("interrupted", ctypes.c_uint32),
        ("shown", ctypes.c_uint32),
        ("n_drones", ctypes.c_uint32),
        ("freq", ctypes.c_uint32),
    )


@cache
def is_available() -> bool:
    """Whether the library is there, and JAX compiles calls of it."""

    def compiles() -> bool:
        numbers, address = (
            jax.ShapeDtypeStruct((n,), dtype) for n, dtype in ((8, np.float32), (2, np.uint32))
        )
        call = partial(_call, n_state=1, n_inputs=1, n_columns=1)
        jax.jit(call).lower(numbers, numbers, address).compile()
        return True

    return _LIBRARY.exists() and works(compiles, "jax.ffi")


@cache
def _register() -> None:
    """Make the library known to JAX."""
    function = ctypes.CDLL(str(_LIBRARY)).crazyflow_ros_exchange
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(function), platform="cpu")


def _call(results: Array, arguments: Array, address: Array, **sizes: int) -> tuple[Array, Array]:
    """See `Exchange.call`."""
    _register()
    # To XLA it looks like a pure function. With effects each loop would take 0.1 ms more.
    function = jax.ffi.ffi_call(_TARGET, (arguments, jax.ShapeDtypeStruct((), bool)))
    attributes = {name: np.int64(size) for name, size in sizes.items()}
    return cast("tuple[Array, Array]", function(results, arguments, address, **attributes))


class CompiledExchange:
    """An `Exchange` for the drones of a shared memory.

    Args:
        memory: With the states and the commands.
        freq: Physics ticks per second.
        commands: In force, of which the numbers change.
        range_: (M, 1) what the range sensors have measured.
        counts: (M,) commands seen so far.
        sessions: (M,) of the controllers that are obeyed.
        ahead: See `Exchange`.
    """

    def __init__(
        self,
        memory: SharedMemory,
        freq: int,
        commands: Commands,
        range_: np.ndarray,
        counts: np.ndarray,
        sessions: np.ndarray,
        ahead: Callable[[int], int],
    ) -> None:
        self.ahead = ahead
        self.values = commands.values
        self.rotor_angle, self.rotor_vel = np.zeros((2, *self.values.shape))
        self._arrays = (  # kept, for the library has their addresses
            *(self.rotor_angle, self.rotor_vel, self.values),
            *(range_, commands.level, commands.most, counts, sessions),
        )
        addresses = (array.ctypes.data for array in self._arrays)
        self._loop = _Loop(
            memory.address, *addresses, rpm=RPM, n_drones=len(self.values), freq=freq
        )
        self.address = np.array([ctypes.addressof(self._loop)], np.uint64).view(np.uint32)

    def begin(self, tick: int, epoch: int, n_periods: int) -> None:
        """See `Exchange`."""
        loop = self._loop
        loop.tick, loop.epoch, loop.left, loop.done = tick, epoch, n_periods, 0
        loop.patience, loop.shown = _PATIENCE, 0

    def call(
        self, results: Array, arguments: Array, address: Array, **sizes: int
    ) -> tuple[Array, Array]:
        """See `Exchange`."""
        return _call(results, arguments, address, **sizes)

    @property
    def done(self) -> int:
        """See `Exchange`."""
        return int(self._loop.done)

    def settle(self) -> tuple[int, bool]:
        """What the last loop did that was not asked yet.

        Returns:
            How many states were answered, and whether the one at its end was shown, too.
        """
        loop = self._loop
        answered, shown = max(0, loop.done - 1), bool(loop.shown)
        loop.done = loop.shown = 0
        return answered, shown

    def interrupt(self, interrupted: bool) -> None:
        """Let no loop wait, or go on, from now on. From any thread."""
        self._loop.interrupted = interrupted
