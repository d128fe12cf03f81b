"""Rotor speeds that arrive asynchronously, for example in messages, for the physics thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.runtime.door_commands import Commands
from crazyflow_ros.scene import Mirror

Output = Callable[[Snapshot, Mirror, np.ndarray], None]


class TopicSource:
    """A `Door` that never waits: the latest commands take effect at each control tick.

    At the start and after a reset a drone is held until its first command.
    """

    name = "ros2_control"

    def __init__(
        self,
        drones: Sequence[str],
        *,
        freq: int,
        rate: int,
        on_loss: str,
        logger: Logger,
        n_rotors: int = QUADROTOR,
    ) -> None:
        """Initialise without commands.

        Args:
            drones: Names of the drones.
            freq: Physics ticks per second.
            rate: Control periods per second.
            on_loss: Reaction to a lost controller, an `OnLoss`.
            logger: Logger for found, lost and refused controllers.
            n_rotors: Number of rotors of a drone.

        Raises:
            ValueError: The rate does not divide `freq`.
        """
        self.period = ticks_per_period(freq, rate, "ros2_control.rate")
        self._drones, self._logger = tuple(drones), ThrottledLogger.of(logger)
        self._outputs: list[Output] = []
        self._lock = threading.Lock()  # guards everything below
        self._commands = Commands(drones, OnLoss(on_loss), self._logger, n_rotors)
        self._attached = np.zeros(len(self._drones), bool)
        self._epoch, self._now_ns = 0, 0
        self._reset_ns = np.zeros(len(self._drones), np.int64)

    def add_output(self, output: Output) -> None:
        """Register a receiver of the state and the active levels (M,), called before the clock."""
        self._outputs.append(output)

    def put(self, drone: int, speeds: np.ndarray, stamp_ns: int) -> None:
        """Command a drone, from any thread.

        Args:
            drone: Index of the drone.
            speeds: Rotor speeds [rad/s], shape (n,). All NaN means that the controller is inactive;
                a command with a single value that is not finite or too large is refused.
            stamp_ns: Simulation time of the command [ns], 0 if unknown. A command from before the
                last reset, or from that instant, is dropped, because it reacts to an older state.
        """
        with self._lock:
            if 0 < stamp_ns <= self._reset_ns[drone]:
                return
            if np.isnan(speeds).all():
                self._lose(drone)
                return
            # Any node can send a message: an invalid one leaves the last valid command in force.
            is_valid = self._commands.put(drone, Level.rotor_velocity, speeds)
            if is_valid and not self._attached[drone]:
                self._attached[drone] = True
                self._logger.info(f"{self._drones[drone]}: its controller is active")

    def refuse(self, drone: int, what: str, why: str) -> None:
        """Count and log an unreadable command, from any thread."""
        with self._lock:
            self._commands.refuse(drone, what, why)

    def lose(self, drone: int) -> None:
        """Mark a drone as no longer commanded, from any thread."""
        with self._lock:
            self._lose(drone)

    def status(self) -> DoorStatus:
        """See `Door`; control periods count only in lock-step."""
        with self._lock:
            attached = tuple(np.array(self._drones)[self._attached].tolist())
            return DoorStatus(attached, 0, 0, self._commands.refused)

    # For the physics thread.

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Pass the state to all outputs, after discarding all commands if a reset occurred."""
        with self._lock:
            if snapshot.time_ns < self._now_ns:  # of a checkpoint, which may be of this epoch
                self._reset_ns[:] = snapshot.time_ns
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
        """Copy the latest commands."""
        del snapshot, interrupted
        with self._lock:
            command[:], level[:] = self._commands.values, self._commands.level
        return True

    def interrupt(self) -> None:
        """Do nothing: this door never waits."""

    def set_paused(self, paused: bool) -> None:
        """Do nothing: controllers see a pause in the clock."""

    def close(self) -> None:
        """Say what the log left out: there is nothing else to close."""
        self._logger.close()

    def forget(self, drones: np.ndarray) -> None:
        """See `Door`."""
        with self._lock:
            self._forget(drones)

    def _forget(self, which: np.ndarray | slice) -> None:
        """Discard commands that react to the latest shown state or an earlier one."""
        self._commands.forget(which)
        self._reset_ns[which] = self._now_ns

    def _lose(self, drone: int) -> None:
        if self._attached[drone]:
            self._attached[drone] = False
            self._logger.info(f"{self._drones[drone]}: its controller is inactive")
        self._commands.lose(drone)
