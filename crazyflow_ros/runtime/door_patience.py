"""How long simulated time waits for the commands of a door."""

from __future__ import annotations

import time
from collections.abc import Iterable

from crazyflow_ros.checks.throttled_logger import Logger


class Patience:
    """The wait of a door for the commands of a control tick, and what it says if they are late.

    After a missed deadline time runs no faster than real time until commands arrive in time again,
    so that those who send them can catch up. For one thread.

    Args:
        door: Name of the door, for messages.
        period: Time between two control ticks [s].
        timeout: How long to wait for commands [s of wall time].
        logger: Reports a missed deadline, once, and when commands arrive in time again.

    Attributes:
        cycles: Control periods in which all commands were in time.
        timeouts: Control periods with late or missing commands.
    """

    def __init__(self, door: str, period: float, timeout: float, logger: Logger) -> None:
        self._door, self._logger = door, logger
        self._period, self._timeout = period, timeout
        self._since: float | None = None  # wall time at which the tick began to wait
        self._missed = 0  # periods of the present outage
        self.cycles = self.timeouts = 0

    def begin(self) -> None:
        """Begin anew, because there is a new state, or because time stood still."""
        self._since = None

    def left(self) -> float:
        """Return the wall time [s] that is left, not positive after the deadline."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        timeout = min(self._timeout, self._period) if self._missed else self._timeout
        return self._since + timeout - now

    def note_answers(self) -> None:
        """Record that all commands of the tick have arrived."""
        self.cycles += 1
        if self._missed:
            self._logger.info(
                f"{self._door}: commands arrive in time again, after {self._missed} periods "
                "without commands"
            )
            self._missed = 0

    def note_deadline(self, late: Iterable[str]) -> None:
        """Record that the deadline has passed without the commands of some drones."""
        self.timeouts += 1
        self._missed += 1
        if self._missed == 1:
            self._logger.warning(
                f"{self._door}: no command within {self._timeout:g} s for {', '.join(late)}: "
                "continuing with the last commands"
            )
