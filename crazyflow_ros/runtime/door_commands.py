"""Commands for each drone, from any transport: what is in force, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.control import Controller
from crazyflow_ros.drones.rotors import MOST, QUADROTOR
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.runtime.door import OnLoss

LIMITS = {
    Level.rotor_velocity: (limits.ROTOR_VELOCITY,) * MOST,
    Level.attitude: (*(limits.ANGLE,) * 3, limits.FORCE),
    Level.body_rate: (*(limits.ANGULAR_VELOCITY,) * 3, limits.FORCE),
    Level.acceleration: (*(limits.ACCELERATION,) * 3, limits.ANGLE),
    Level.goal: (*(limits.POSITION,) * 3, limits.ANGLE),
}
"""Limits of the numbers of a command; those of rotors are all the same."""

_NUMBERS = {
    Level.rotor_velocity: tuple(f"rotor{i}" for i in range(MOST)),
    Level.attitude: ("roll", "pitch", "yaw", "thrust"),
    Level.body_rate: ("roll_rate", "pitch_rate", "yaw_rate", "thrust"),
    Level.acceleration: ("x", "y", "z", "yaw"),
    Level.goal: ("x", "y", "z", "yaw"),
}
"""Names of the numbers: controllers claim and order them as they like."""

WORDS = {
    Level.rotor_velocity: "rotor speeds",
    Level.attitude: "attitude and thrust",
    Level.body_rate: "body rates and thrust",
    Level.acceleration: "acceleration and heading",
    Level.goal: "goal",
}
"""What is commanded, for the log."""

_MOST = np.zeros((max(LIMITS) + 1, MOST))  # the same, by level
for _level, _limits in LIMITS.items():
    _MOST[_level, : len(_limits)] = [limit.most for limit in _limits]
_THEN = {
    OnLoss.hold: "it is held where it is",
    OnLoss.keep: "the last valid command stays in force",
    OnLoss.stop: "its rotors stop",
}


def usable(levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return which commands are valid, shape (M,).

    Args:
        levels: (M,) integers; valid are those of `LIMITS`.
        values: (M, n) the numbers, zeros after those of a level.
    """
    known = np.isin(levels, list(LIMITS))
    most = _MOST[np.where(known, levels, 0).astype(int), : values.shape[1]]
    return np.asarray(known & (np.abs(values) <= most).all(axis=1))


def refusal(level: int, values: np.ndarray, others: Sequence[Level] = ()) -> tuple[str, str]:
    """Describe a refused command, and what was expected, for `Commands.refuse`.

    Args:
        level: Its level.
        values: Its numbers.
        others: Levels that only the default controller follows.
    """
    if level not in LIMITS:
        what = f"command {limits.shown(values)}"
        known = ", ".join(map(str, map(int, LIMITS)))
        return what, f"expected a level of 0, {known}, got {level}"
    if level in others:
        need = f"level {level}, {Level(level).name}, needs the parameter controller"
        return f"command {limits.shown(values)}", f"{need} {Controller.default}"
    names, most = _NUMBERS[Level(level)], LIMITS[Level(level)]
    numbers = ", ".join(f"{n} {value:g} {m.unit}" for n, value, m in zip(names, values, most))
    within = " and ".join(dict.fromkeys(map(str, most)))
    return (
        f"command {numbers}",
        f"level {level}, {Level(level).name}, takes finite numbers within {within}",
    )


class Commands:
    """The commands in force: for each drone a level and its numbers.

    Args:
        drones: Names of the drones.
        on_loss: What a drone does without commands.
        logger: Logger of refused commands.
        n_rotors: Number of rotors of a drone.

    Attributes:
        level: (M,) the `Level` of each drone; initially all are held.
        values: (M, n) the numbers, zeros after those of the level.
        most: (M, n) their largest magnitudes at that level.
        refused: Number of refused commands.
    """

    def __init__(
        self, drones: Sequence[str], on_loss: OnLoss, logger: Logger, n_rotors: int = QUADROTOR
    ) -> None:
        self._drones, self._on_loss = tuple(drones), on_loss
        self._logger = ThrottledLogger.of(logger)
        n = len(self._drones)
        self.level, self.values = np.full(n, float(Level.held)), np.zeros((n, n_rotors))
        self.most = np.zeros((n, n_rotors))
        self.refused = 0

    def forget(self, which: np.ndarray | slice = slice(None)) -> None:
        """Hold all drones, or those of some indices, until their next command."""
        self.level[which] = Level.held

    def take(self, which: np.ndarray | int, level: np.ndarray | Level, values: np.ndarray) -> None:
        """Put commands into force for some drones, given by a mask or an index."""
        self.level[which], self.values[which] = level, values
        self.most[which] = _MOST[np.asarray(level, int), : self.most.shape[1]]

    def put(self, drone: int, level: Level, values: np.ndarray) -> bool:
        """Put a command of a drone into force, or refuse it; then the last one stays in force.

        Args:
            drone: Index of the drone.
            level: Meaning of the numbers.
            values: (k,) the numbers: as many as rotors, or those of another level.

        Returns:
            Whether it is in force.
        """
        if level in LIMITS and (np.abs(values) <= _MOST[level, : len(values)]).all():
            self.values[drone] = 0.0
            self.level[drone], self.values[drone, : len(values)] = level, values
            self.most[drone] = _MOST[level, : self.most.shape[1]]
            return True
        self.refuse(drone, *refusal(level, values))
        return False

    def refuse(self, drone: int, what: str, why: str, *, lost: bool = False) -> None:
        """Refuse a command, and log it.

        Args:
            drone: Index of the drone.
            what: Description of the command.
            why: What was expected.
            lost: Whether the drone now has no commands, because its only source sent this one.
        """
        self.refused += 1
        then = _THEN[self._on_loss if lost else OnLoss.keep]
        self._logger.warning(f"{self._drones[drone]}: {what} is refused: {why}; {then}")
        if lost:
            self.lose(drone)

    @property
    def without(self) -> str:
        """What a drone without commands does, in words."""
        return _THEN[self._on_loss]

    def lose(self, drone: int) -> None:
        """Apply `on_loss` to a drone that no longer has commands."""
        if self._on_loss is OnLoss.hold or self.level[drone] == Level.held:
            self.level[drone] = Level.held
        elif self._on_loss is OnLoss.stop:
            self.level[drone], self.values[drone] = Level.rotor_velocity, 0.0
