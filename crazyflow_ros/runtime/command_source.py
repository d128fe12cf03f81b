"""Sources of commands outside the process, one set of commands per control period."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import numpy as np

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.scene import Mirror


class OnLoss(StrEnum):
    """Behaviour of a drone whose controller ends, is deactivated, or stops sending commands.

    A drone that was never commanded, or not since the reset, is held in any case.
    """

    hold = "hold"
    """The drone stays where it is, at rest, until it is commanded again."""
    keep = "keep"
    """The last command stays in force."""
    stop = "stop"
    """The rotors stop, and the drone falls."""


class CommandSource(Protocol):
    """A source of commands for the physics thread, which calls it unless stated otherwise.

    Attributes:
        period: Ticks between two control ticks, which are its multiples.
    """

    period: int

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Publish the state: at each control tick, at the start, and after a request changed it."""

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """Write the commands that apply from a control tick on; wait for them if necessary.

        Args:
            snapshot: The state at the control tick.
            command: (M, 4) to write into, numbers of a `Level`.
            level: (M,) to write into, a `Level`.
            interrupted: Whether the thread has something else to do.

        Returns:
            False if it was interrupted, and has to be called again.
        """

    def forget(self, drones: np.ndarray) -> None:
        """Drop the commands of drones, by index, because they were reset."""

    def interrupt(self) -> None:
        """Wake `collect`, because `interrupted` has become true. From any thread."""

    def set_paused(self, paused: bool) -> None:
        """Record that time stands still, or runs again."""

    def close(self) -> None:
        """Close at the end of the simulation. From any thread, possibly more than once."""
