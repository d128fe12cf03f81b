"""How often each drone was put back, and when: what errors of its sensors depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.reset import ResetEvent, ResetScope


class Life(NamedTuple):
    """From a reset of a drone to the next."""

    resets: int
    """Of this drone before."""
    tick: int
    """At which it began."""


class DroneLives:
    """Is told in the physics thread, before anybody sees what comes after.

    Where time alone jumps back all drones begin anew, too.

    Args:
        snapshot: With the drones that there are.

    Attributes:
        current: Lives by name of the drone. It is replaced and never changed: whoever has it knows
            how things were at that time.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.current: Mapping[str, Life] = {}
        self.note_drones(snapshot)

    def note_drones(self, snapshot: Snapshot) -> None:
        """Drones may have come or gone."""
        born = Life(0, snapshot.tick)
        self.current = {name: self.current.get(name, born) for name in snapshot.names}

    def note_reset(self, event: ResetEvent) -> None:
        """Drones were put back, or time was."""
        snapshot, goes_back = event.snapshot, ResetScope.time in event.scope
        drones = snapshot.names if goes_back else event.drones
        begun = {name: Life(self.current[name].resets + 1, snapshot.tick) for name in drones}
        self.current = {**self.current, **begun}

    def capture(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {name: life._asdict() for name, life in self.current.items()}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on from what `capture` gave."""
        self.current = {name: Life(**life) for name, life in kept.items()}
