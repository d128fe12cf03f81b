"""Who commands the drones from outside the process, control period by control period."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import numpy as np
from jax import Array

from crazyflow_ros.runtime.snapshot import Snapshot
from crazyflow_ros.scene import Mirror


class OnLoss(StrEnum):
    """What a drone does when its controller goes away: ends, is deactivated, or commands nothing.

    A drone that was never commanded, or not since the reset, is held in any case.
    """

    hold = "hold"
    """It is kept where it is, at rest, until it is commanded again."""
    keep = "keep"
    """The last command holds."""
    stop = "stop"
    """The rotors stop, and it falls."""


class Exchange(Protocol):
    """Shows states and takes commands within a compiled loop, between two control periods.

    Attributes:
        address: (2,) uint32, an argument for `call` that stays the same.
        rotor_angle: (M, 4) of the rotor joints [rad], to be set before a loop; then at its end.
        rotor_vel: (M, 4) likewise [rad/s].
        values: (M, 4) numbers of the commands in force.
        done: Control periods that the last loop has had.
    """

    address: np.ndarray
    rotor_angle: np.ndarray
    rotor_vel: np.ndarray
    values: np.ndarray

    @property
    def done(self) -> int:
        """See above."""

    def ahead(self, tick: int) -> int:
        """Control periods that may be left to it, from a tick on whose commands were collected."""

    def begin(self, tick: int, epoch: int, n_periods: int) -> None:
        """A loop comes, from a tick on and of so many control periods at most."""

    def call(
        self, results: Array, arguments: Array, address: Array, **sizes: int
    ) -> tuple[Array, Array]:
        """What the loop does after each control period, to be traced.

        Args:
            results: Of the ticks of a period, float32: the state of the simulation, then a row for
                each drone, see `CompiledWorld.advance`.
            arguments: Of the same, float32: the state before, inputs of each drone, phase, 1 and
                the number of ticks.
            address: As above.
            **sizes: n_state, n_inputs and n_columns: numbers of the state, and for each drone.

        Returns:
            Arguments of the next period, and whether there is one: the loop ends after its last
            one, when a drone gets lost, and when anything but new numbers has come.
        """


class CommandSource(Protocol):
    """What the physics thread asks of whoever brings it commands. Called there, if not said else.

    Attributes:
        period: Ticks between two control ticks, which are its multiples.
        exchange: Can do some of it in a compiled loop, if there is one.
    """

    period: int

    @property
    def exchange(self) -> Exchange | None:
        """See above."""

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Hand out the state: of each control tick, of the start, and after a change by hand."""

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """Fill in what holds from a control tick on, after waiting for it if need be.

        Args:
            snapshot: The state that is to be answered.
            command: (M, 4) to write into, numbers of a `Level`.
            level: (M,) to write into, a `Level`.
            interrupted: The thread has something else to do.

        Returns:
            Whether that is done. If not, it was interrupted, and wants to be called again.
        """

    def forget(self, drones: np.ndarray) -> None:
        """These drones, by index, were put back: what they were told counts no more."""

    def interrupt(self) -> None:
        """End the waiting of `collect`, for `interrupted` has become true. From any thread."""

    def set_paused(self, paused: bool) -> None:
        """Time stands still, or runs again."""

    def close(self) -> None:
        """The simulation has ended. From any thread, once or more often."""
