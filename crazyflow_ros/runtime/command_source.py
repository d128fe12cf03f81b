"""Who commands the drones from outside the process, control period by control period."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import numpy as np

from crazyflow_ros.engine.snapshot import Snapshot
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


class CommandSource(Protocol):
    """What the physics thread asks of whoever brings it commands. Called there, if not said else.

    Attributes:
        period: Ticks between two control ticks, which are its multiples.
    """

    period: int

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
