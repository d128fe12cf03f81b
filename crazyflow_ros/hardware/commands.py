"""What ros2_control has told each drone, whichever way it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crazyflow_ros.runtime import Level, OnLoss


class Logger(Protocol):
    """Python's, or that of a ROS node."""

    def info(self, message: str) -> object:
        """Something to know."""

    def warning(self, message: str) -> object:
        """Something to look after."""


@dataclass(frozen=True)
class LinkStatus:
    """How the controllers are doing."""

    attached: tuple[str, ...]
    """Drones that have a controller which answers."""
    cycles: int
    """Control periods with all answers in time, in lock-step."""
    timeouts: int
    """Control periods without."""
    refused: int
    """Commands that were not obeyed: not finite, or of no known level."""


class Commands:
    """The commands in force: for each drone a level and its four numbers.

    Args:
        drones: Their names.
        on_loss: What a drone does that is lost.
        logger: For what is refused.

    Attributes:
        level: (M,) a `Level` of each drone; at first all are held.
        values: (M, 4) the numbers.
        refused: How many commands were not obeyed.
    """

    def __init__(self, drones: Sequence[str], on_loss: OnLoss, logger: Logger) -> None:
        self._drones, self._on_loss, self._logger = tuple(drones), on_loss, logger
        n = len(self._drones)
        self.level, self.values = np.full(n, float(Level.held)), np.zeros((n, 4))
        self.refused = 0
        self._refusing = np.zeros(n, bool)

    def forget(self, which: np.ndarray | slice = slice(None)) -> None:
        """Hold drones, all or those of some indices, until they are commanded anew."""
        self.level[which] = Level.held

    def take(self, which: np.ndarray | int, level: np.ndarray | Level, values: np.ndarray) -> None:
        """Obey the commands of some drones, given by a mask or an index."""
        self.level[which], self.values[which], self._refusing[which] = level, values, False

    def refuse(self, drone: int, what: str) -> None:
        """Leave a drone as it is, and say so if the last one was not refused."""
        self.refused += 1
        if not self._refusing[drone]:
            self._refusing[drone] = True
            self._logger.warning(
                f"{self._drones[drone]}: {what} is refused, the last good one holds"
            )

    def lose(self, drone: int) -> None:
        """Nobody commands this drone any more."""
        if self._on_loss is OnLoss.hold or self.level[drone] == Level.held:
            self.level[drone] = Level.held
        elif self._on_loss is OnLoss.stop:
            self.level[drone], self.values[drone] = Level.rotor_velocity, 0.0
