"""Rotor speeds that arrive at any time, for example as messages, for the physics thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.lockstep.commands import Commands, LinkStatus, refusal, usable
from crazyflow_ros.runtime import Level, OnLoss, Snapshot
from crazyflow_ros.runtime.health import Logger
from crazyflow_ros.scene import Mirror

Output = Callable[[Snapshot, Mirror, np.ndarray], None]


class TopicSource:
    """A `CommandSource` that never waits: at each control tick the latest commands take effect.

    A drone is held until its first command, at the start and after a reset.
    """

    def __init__(
        self, drones: Sequence[str], *, freq: int, rate: int, on_loss: str, logger: Logger
    ) -> None:
        """Wait for nothing.

        Args:
            drones: Their names.
            freq: Physics ticks per second.
            rate: Control periods per second.
            on_loss: An `OnLoss`.
            logger: For what happens.

        Raises:
            ValueError: The rate does not divide `freq`.
        """
        self.period = ticks_per_period(freq, rate, "ros2_control.rate")
        self._drones, self._logger = tuple(drones), logger
        self._outputs: list[Output] = []
        self._lock = threading.Lock()  # guards all below
        self._commands = Commands(drones, OnLoss(on_loss), logger)
        self._attached = np.zeros(len(self._drones), bool)
        self._epoch, self._now_ns = 0, 0
        self._reset_ns = np.zeros(len(self._drones), np.int64)

    def add_output(self, output: Output) -> None:
        """Have states handed out, together with the levels (M,) in force, before the clock."""
        self._outputs.append(output)

    def put(self, drone: int, speeds: np.ndarray, stamp_ns: int) -> None:
        """Command a drone, from any thread.

        Args:
            drone: Its index.
            speeds: Of the rotors [rad/s], shape (4,). All NaN means that nobody commands it, one
                that is not finite or too large that the command is refused.
            stamp_ns: Simulation time of the command [ns], 0 if that is not known. One that is not
                later than the last reset is dropped, for it answers a state before.
        """
        with self._lock:
            if 0 < stamp_ns <= self._reset_ns[drone]:
                return
            if usable(np.array([Level.rotor_velocity]), speeds[None])[0]:
                if not self._attached[drone]:
                    self._attached[drone] = True
                    self._logger.info(f"{self._drones[drone]}: its controller is active")
                self._commands.take(drone, Level.rotor_velocity, speeds)
            elif np.isnan(speeds).all():
                self._lose(drone)
            else:  # anybody can send a message: the last one of its controller holds
                self._commands.refuse(drone, *refusal(Level.rotor_velocity, speeds))

    def refuse(self, drone: int, what: str, why: str) -> None:
        """Count and report a command that cannot be read, from any thread."""
        with self._lock:
            self._commands.refuse(drone, what, why)

    def lose(self, drone: int) -> None:
        """Nobody commands a drone any more, from any thread."""
        with self._lock:
            self._lose(drone)

    def status(self) -> LinkStatus:
        """How the controllers are doing; nobody waits for them, so no periods are counted."""
        with self._lock:
            attached = tuple(np.array(self._drones)[self._attached].tolist())
            return LinkStatus(attached, 0, 0, self._commands.refused)

    # For the physics thread.

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Hand out the state, after forgetting all commands if there was a reset."""
        with self._lock:
            self._now_ns = snapshot.time_ns
            if snapshot.epoch != self._epoch:
                self._epoch = snapshot.epoch
                self._forget(slice(None))
            level = self._commands.level.copy()
        for output in self._outputs:
            output(snapshot, mirror, level)

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """The latest commands."""
        del snapshot, interrupted
        with self._lock:
            command[:], level[:] = self._commands.values, self._commands.level
        return True

    def interrupt(self) -> None:
        """Nothing ever waits."""

    def set_paused(self, paused: bool) -> None:
        """Controllers see it by the clock."""

    def close(self) -> None:
        """Nothing is left open."""

    def forget(self, drones: np.ndarray) -> None:
        """See `CommandSource`."""
        with self._lock:
            self._forget(drones)

    def _forget(self, which: np.ndarray | slice) -> None:
        """What answers the latest state that was shown, or one before, counts no more."""
        self._commands.forget(which)
        self._reset_ns[which] = self._now_ns

    def _lose(self, drone: int) -> None:
        if self._attached[drone]:
            self._attached[drone] = False
            self._logger.info(f"{self._drones[drone]}: nobody commands it any more")
        self._commands.lose(drone)
