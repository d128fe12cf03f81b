"""What a reset puts back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto

from crazyflow_ros.engine.snapshot import Snapshot


class ResetScope(Flag):
    """Parts of a reset, to be combined."""

    time = auto()
    """The clock jumps back to its start. What the drones are told goes on from where it is."""
    state = auto()
    """The drones go back to their initial state, with fresh controllers, and are told nothing."""
    spawned = auto()
    """The drones are those of the start: others are removed, missing ones come back."""
    all = time | state | spawned


@dataclass(frozen=True)
class ResetEvent:
    """A reset that has been carried out."""

    snapshot: Snapshot
    """The state after it."""
    scope: ResetScope
    drones: tuple[str, ...]
    """Those whose state was put back."""
