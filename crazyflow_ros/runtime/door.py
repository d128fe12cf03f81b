"""Doors: programs outside this process fly the drones through them, instead of the commander."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.health import Health
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


@dataclass(frozen=True)
class DoorStatus:
    """Who flies the drones through a door, and how well commands arrive."""

    attached: tuple[str, ...]
    """Drones of the door with an active controller."""
    cycles: int
    """Control periods in which all answers were in time, in lock-step."""
    timeouts: int
    """Control periods with late or missing answers."""
    refused: int
    """Commands that were refused: not finite, too large, or of an unknown level."""


class Door(Protocol):
    """A way in for programs that fly drones; the physics thread calls it, unless stated.

    At each control tick the readings go out with `show`, and then the commands that apply from that
    tick on come in with `collect`, for which time waits. So a program that answers each reading is
    in lock-step, and its flights repeat to the bit. A method that raises is logged with the door's
    name, and time runs on with the last commands.

    Attributes:
        name: Name of the door in messages.
        period: Ticks between two control ticks, which are its multiples.
    """

    name: str
    period: int

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Send the readings: at each control tick, at the start, and after a change of the state.

        Must not wait.

        Args:
            snapshot: The state of the drones that the door flies, in the order in which it was
                given them.
            mirror: The MuJoCo side of all drones, in the same state; `snapshot.names` are the
                door's.
        """

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
            command: (M, n) to write into, numbers of a `Level`: speeds of n rotors, or 4 numbers.
            level: (M,) to write into, a `Level` up to `acceleration`.
            interrupted: Whether the thread has something else to do, such as a pause.

        Returns:
            False if the wait was interrupted, or commands are missing: `collect` is called again,
            after requests such as a pause. A long wait returns False ten times a second, to show
            the watchdog that it does not hang.
        """

    def forget(self, drones: np.ndarray) -> None:
        """Drop the commands of drones, by index, because they were reset."""

    def interrupt(self) -> None:
        """Wake `collect`, because `interrupted` has become true. From any thread."""

    def set_paused(self, paused: bool) -> None:
        """Record that time stands still, or runs again."""

    def close(self) -> None:
        """Close at the end of the simulation. From any thread, possibly more than once."""

    def status(self) -> DoorStatus:
        """Return the state of the controllers. From any thread."""


@runtime_checkable
class TakesGamepad(Protocol):
    """A door that a gamepad flies."""

    def take_gamepad(self, axes: Sequence[float], buttons: Sequence[int]) -> None:
        """Take the state of the gamepad. From any thread.

        Raises:
            ValueError: The gamepad lacks an axis or button that the settings name, or a value is
                not in its range.
        """


@runtime_checkable
class CommandsBodies(Protocol):
    """A door that also reads and commands joints of the world, in `show` and `collect`."""

    def meet(self, bodies: MovingBodies | None) -> None:
        """Take the moving bodies of the world, at the start and whenever they are others.

        They are in the state of the latest snapshot. None if nothing but drones moves.
        """


class DoorGuard:
    """Lets a door fly its drones, and no others.

    Exceptions of the door are logged under its name, so that no door ends the physics thread.

    Args:
        door: The door.
        drones: Names of the drones that it flies, in its order; they stay the same.
        names: Names of all drones at the start.
        health: Logs failures; the watchdog names the door in which the thread hangs.

    Attributes:
        name: As of the door.
        period: As of the door.
        drones: As given.
        flies_all: Whether it flies all drones, so that none can be added.

    Raises:
        ValueError: The door flies no drone, one that does not exist, or one twice.
    """

    def __init__(
        self, door: Door, drones: Sequence[str], names: Sequence[str], health: Health
    ) -> None:
        self._door, self._health = door, health
        self.name, self.period = door.name, door.period
        self._what, self._closed = f"the door {door.name}", False
        for drone in drones:
            if drone not in names:
                raise ValueError(f"{self._what}: {unknown('drone', drone, names)}")
        if not drones or len(set(drones)) < len(drones):
            need = "needs drones, each once"
            raise ValueError(f"{self._what} {need}, got {shown(', '.join(drones)) or 'none'}")
        self.drones, self.flies_all = tuple(drones), len(drones) == len(names)
        self._rows: tuple[tuple[str, ...], np.ndarray] = (), np.zeros(0, int)
        self._bodies: MovingBodies | None = None

    def rows(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the rows of the door's drones among those with these names."""
        if self._rows[0] is not names:
            self._rows = names, np.array([names.index(drone) for drone in self.drones])
        return self._rows[1]

    def own(self, snapshot: Snapshot) -> Snapshot:
        """Return the state of the door's drones, in its order."""
        if snapshot.names == self.drones:
            return snapshot
        return snapshot.of(self.rows(snapshot.names))

    def show(self, snapshot: Snapshot, mirror: Mirror, bodies: MovingBodies | None = None) -> None:
        """See `Door` and `CommandsBodies`; takes the state of all drones."""
        if bodies is not self._bodies and isinstance(self._door, CommandsBodies):
            self._health.call(self._what, self._door.meet, bodies)
        self._bodies = bodies
        self._health.call(self._what, self._door.show, self.own(snapshot), mirror)

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """See `Door`; takes the state of all drones. If it fails, the last commands stay."""
        self._health.doing = f"waiting for {self._what}"
        try:
            return self._door.collect(self.own(snapshot), command, level, interrupted)
        except Exception as error:
            self._health.note_failure(self._what, error)
            return True

    def forget(self, names: Iterable[str]) -> None:
        """See `Door`; takes the names of any drones."""
        drones = [self.drones.index(name) for name in names if name in self.drones]
        if drones:
            self._health.call(self._what, self._door.forget, np.array(drones))

    def interrupt(self) -> None:
        """See `Door`; nothing happens once it is closed."""
        if self._closed:
            return
        try:
            self._door.interrupt()
        except Exception as error:
            if not self._closed:  # by the physics thread, meanwhile
                self._health.note_failure(self._what, error)

    def set_paused(self, paused: bool) -> None:
        """See `Door`."""
        self._health.call(self._what, self._door.set_paused, paused)

    def close(self) -> None:
        """See `Door`."""
        if not self._closed:
            self._closed = True  # before it is: whoever interrupts it meanwhile may fail
            self._health.call(self._what, self._door.close)
