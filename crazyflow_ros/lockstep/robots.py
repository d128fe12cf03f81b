"""Robots of the world behind the shared memory: what they show, and commands of their joints."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.engine.robot_joints import N_NUMBERS, RobotJoints
from crazyflow_ros.lockstep.layout import JOINT, Entry
from crazyflow_ros.runtime import OnLoss
from crazyflow_ros.scene.robot_parts import LARGEST, Mode, joints_of, sensors_of

WAITING = 8
"""Level of a joint whose controller has started but has no commands yet: it goes on as before."""
_MOST = np.array(LARGEST)
_NONE = 0
_THEN = ("it holds its position, or rests without force", "its last command stays in force")
_KEPT = np.array([1.0, 0.0, 0.0])  # of a command whose controller is gone: the position


def parts_of(model: mujoco.MjModel) -> list[Entry]:
    """Return the joints of robots in a world, then their sensors."""
    joints = [Entry(j.name, JOINT, N_NUMBERS, int(j.modes)) for j in joints_of(model)]
    return joints + [Entry(sensor.name, sensor.kind, sensor.size) for sensor in sensors_of(model)]


class Robots:
    """The commands in force for joints: of each the modes, and a number for each mode.

    Args:
        parts: See `parts_of`.
        on_loss: What a joint does without commands: unless it keeps the last one, a position is
            held, and velocity and effort end.
        logger: Logger of refused commands.

    Attributes:
        names: Names of the joints.
        level: (J,) the modes, see `Mode`; 0 before the first command.
        values: (J, 3) position, velocity and effort.
        most: (J, 3) their largest magnitudes.
        without: What a joint without commands does, in words.
        refused: Number of refused commands.
    """

    def __init__(self, parts: Sequence[Entry], on_loss: OnLoss, logger: Logger) -> None:
        joints = [part for part in parts if part.kind == JOINT]
        self.names = tuple(part.name for part in joints)
        self._sensors = [(part.name, part.size) for part in parts if part.kind != JOINT]
        self._n_values = sum(part.size for part in parts)
        self._possible = np.array([part.modes for part in joints], np.uint64)
        self._keeps, self._logger = on_loss is OnLoss.keep, ThrottledLogger.of(logger)
        self.without = _THEN[self._keeps]
        n = len(joints)
        self.level, self.values, self.most = (
            np.zeros(n, int),
            np.zeros((n, N_NUMBERS)),
            np.tile(_MOST, (n, 1)),
        )
        self.refused = 0
        self._joints: RobotJoints | None = None

    @property
    def commanded(self) -> set[str]:
        """Names of the joints that controllers command, or have since the last reset."""
        return {name for name, level in zip(self.names, self.level) if level}

    def meet(self, bodies: MovingBodies | None) -> None:
        """Take the bodies of the present world."""
        known = None if bodies is None else RobotJoints(bodies, self.names, self._sensors)
        self._joints = known

    def read(self) -> np.ndarray:
        """Return the numbers of all parts, in their order, (k,)."""
        return np.full(self._n_values, np.nan) if self._joints is None else self._joints.read()

    def command(self) -> None:
        """Let the commands act from the next tick on."""
        if self._joints is not None:
            self._joints.command(self.level, self.values)

    def forget(self) -> None:
        """Drop all commands, because the world was reset, and its actuators with it."""
        self.level[:] = _NONE

    def usable(self, levels: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return which commands are valid, shape (J,)."""
        known = (levels != _NONE) & ((levels & ~self._possible) == 0)
        return np.asarray(known & (np.abs(values) <= _MOST).all(axis=1))

    def take(self, which: np.ndarray, levels: np.ndarray, values: np.ndarray) -> None:
        """Put commands into force for some joints; a mode that is no longer commanded ends."""
        if self._joints is not None:
            ended = np.zeros_like(self.level)
            ended[which] = self.level[which] & ~levels.astype(int) & ~int(Mode.position)
            self._joints.command(ended, np.zeros_like(self.values))
        self.level[which], self.values[which] = levels, values

    def lose(self, joint: int) -> None:
        """Handle that a joint no longer has commands."""
        if not self._keeps:
            self.values[joint] *= _KEPT

    def refuse(self, joint: int, level: int, values: np.ndarray) -> None:
        """Refuse a command of a joint, log it, and go on without."""
        self.refused += 1
        possible = Mode(int(self._possible[joint]))
        expected = " and ".join(f"{mode.name} within {_MOST[i]:g}" for i, mode in enumerate(Mode)
                                if mode in possible)  # fmt: skip
        given = (
            ", ".join(f"{m.name} {v:g}" for m, v in zip(Mode, values) if level & m) or f"{level}"
        )
        self._logger.warning(
            f"{self.names[joint]}: command {given} is refused: expected {expected}"
        )
        self.lose(joint)
