"""What ros2_control has told each drone, whichever way it came."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crazyflow_ros import limits
from crazyflow_ros.runtime import Level, OnLoss
from crazyflow_ros.runtime.health import Logger

LIMITS = {
    Level.rotor_velocity: (limits.ROTOR_VELOCITY,) * 4,
    Level.attitude: (*(limits.ANGLE,) * 3, limits.FORCE),
    Level.body_rate: (*(limits.ANGULAR_VELOCITY,) * 3, limits.FORCE),
    Level.acceleration: (*(limits.ACCELERATION,) * 3, limits.ANGLE),
}
"""Of the four numbers of a command."""

_MOST = np.zeros((max(Level) + 1, 4))  # the same, by level
for _level, _limits in LIMITS.items():
    _MOST[_level] = [limit.most for limit in _limits]
_LOG_PERIOD = 1.0  # s of wall time between two entries about the same drone
_THEN = {
    OnLoss.hold: "it is held where it is",
    OnLoss.keep: "the last good one holds",
    OnLoss.stop: "its rotors stop",
}


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
    """Commands that were not obeyed: not finite, too large, or of no known level."""


def usable(levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Which commands can be obeyed, shape (M,).

    Args:
        levels: (M,) whole numbers, those of a `Level` but for `held` among them.
        values: (M, 4) the numbers.
    """
    known = (levels > Level.held) & (levels <= max(Level))
    most = _MOST[np.where(known, levels, 0).astype(int)]
    return np.asarray(known & (np.abs(values) <= most).all(axis=1))


def refusal(level: int, values: np.ndarray) -> tuple[str, str]:
    """A command that cannot be obeyed, and why, for `Commands.refuse`."""
    what = f"command {limits.shown(values)}"
    if level not in LIMITS:
        return what, f"its level is {level}, which is none of 0 to {max(Level)}"
    within = " and ".join(dict.fromkeys(map(str, LIMITS[Level(level)])))
    return what, f"level {level}, {Level(level).name}, takes finite numbers within {within}"


class Commands:
    """The commands in force: for each drone a level and its four numbers.

    Args:
        drones: Their names.
        on_loss: What a drone does that is lost.
        logger: For what is refused.

    Attributes:
        level: (M,) a `Level` of each drone; at first all are held.
        values: (M, 4) the numbers.
        most: (M, 4) their largest magnitudes at that level.
        refused: How many commands were not obeyed.
    """

    def __init__(self, drones: Sequence[str], on_loss: OnLoss, logger: Logger) -> None:
        self._drones, self._on_loss, self._logger = tuple(drones), on_loss, logger
        n = len(self._drones)
        self.level, self.values = np.full(n, float(Level.held)), np.zeros((n, 4))
        self.most = np.zeros((n, 4))
        self.refused = 0
        self._refusing = np.zeros(n, bool)  # and it has been said
        self._said = np.full(n, -np.inf)  # when

    def forget(self, which: np.ndarray | slice = slice(None)) -> None:
        """Hold drones, all or those of some indices, until they are commanded anew."""
        self.level[which] = Level.held

    def take(self, which: np.ndarray | int, level: np.ndarray | Level, values: np.ndarray) -> None:
        """Obey the commands of some drones, given by a mask or an index."""
        self.level[which], self.values[which], self._refusing[which] = level, values, False
        self.most[which] = _MOST[np.asarray(level, int)]

    def refuse(self, drone: int, what: str, why: str, *, lost: bool = False) -> None:
        """Do not obey a command, and say so if the last one was not refused, once a second.

        Args:
            drone: Its index.
            what: The command, for the log.
            why: What was expected, likewise.
            lost: It came from the only one who commands the drone, which then has none.
        """
        self.refused += 1
        now = time.monotonic()
        if not self._refusing[drone] and now >= self._said[drone] + _LOG_PERIOD:
            self._refusing[drone], self._said[drone] = True, now
            then = _THEN[self._on_loss if lost else OnLoss.keep]
            self._logger.warning(f"{self._drones[drone]}: {what} is refused: {why}; {then}")
        if lost:
            self.lose(drone)

    def lose(self, drone: int) -> None:
        """Nobody commands this drone any more."""
        if self._on_loss is OnLoss.hold or self.level[drone] == Level.held:
            self.level[drone] = Level.held
        elif self._on_loss is OnLoss.stop:
            self.level[drone], self.values[drone] = Level.rotor_velocity, 0.0
