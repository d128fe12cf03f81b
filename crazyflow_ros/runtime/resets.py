"""Resets: their scope, and how often each drone was reset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, NamedTuple

from crazyflow_ros.engine.snapshot import Snapshot


class ResetScope(Flag):
    """Parts of a reset; combine them with `|`."""

    time = auto()
    """The clock jumps back to its start. Commands continue from their present point."""
    state = auto()
    """The drones return to their initial state, with fresh controllers and without commands."""
    spawned = auto()
    """The initial drones are restored: others are removed, missing ones come back."""
    all = time | state | spawned


@dataclass(frozen=True)
class ResetEvent:
    """A reset that has been carried out."""

    snapshot: Snapshot
    """The state after it."""
    scope: ResetScope
    drones: tuple[str, ...]
    """Drones whose state was reset."""
    charged: bool | None = None
    """Whether drones that were restarted in place, see `DroneFirmware.restart`, had their batteries
    charged; None for drones that returned to their initial state."""


class Life(NamedTuple):
    """The time from one reset of a drone to the next, on which errors of its sensors depend."""

    resets: int
    """Number of earlier resets of this drone."""
    tick: int
    """Tick at which it began."""


class DroneLives:
    """Present lives of all drones, updated in the physics thread before others see the new state.

    All drones also begin a new life if only the time jumps back.

    Args:
        snapshot: State with the present drones.

    Attributes:
        current: Lives by name of the drone. The mapping is replaced and never changed.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.current: Mapping[str, Life] = {}
        self.note_drones(snapshot)

    def note_drones(self, snapshot: Snapshot) -> None:
        """Update after drones may have been added or removed."""
        born = Life(0, snapshot.tick)
        self.current = {name: self.current.get(name, born) for name in snapshot.names}

    def note_reset(self, event: ResetEvent) -> None:
        """Update after a reset."""
        snapshot, goes_back = event.snapshot, ResetScope.time in event.scope
        drones = snapshot.names if goes_back else event.drones
        begun = {name: Life(self.current[name].resets + 1, snapshot.tick) for name in drones}
        self.current = {**self.current, **begun}

    def capture(self) -> dict[str, Any]:
        """Return the lives as JSON values."""
        return {name: life._asdict() for name, life in self.current.items()}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Continue from the result of `capture`."""
        self.current = {name: Life(**life) for name, life in kept.items()}
