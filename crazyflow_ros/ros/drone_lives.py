"""How often each drone was put back, and when: what errors of its sensors depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crazyflow_ros.runtime import PhysicsThread, ResetEvent, ResetScope, Snapshot
from crazyflow_ros.runtime.checkpoint import Checkpoint


class Life(NamedTuple):
    """From a reset of a drone to the next."""

    resets: int
    """Of this drone before."""
    tick: int
    """At which it began."""


class DroneLives:
    """Takes note in the physics thread, before anybody sees what comes after.

    Where time alone jumps back all drones begin anew, too.

    Args:
        physics: The simulation.

    Attributes:
        current: Lives by name of the drone. It is replaced and never changed: whoever has it knows
            how things were at that time.
    """

    def __init__(self, physics: PhysicsThread) -> None:
        self.current: Mapping[str, Life] = {}
        self._note_drones(physics.snapshot)
        physics.on_drones_changed(self._note_drones)
        physics.on_reset(self._note_reset)
        physics.on_restore(self._note_restore)

    def _note_drones(self, snapshot: Snapshot) -> None:
        born = Life(0, snapshot.tick)
        self.current = {name: self.current.get(name, born) for name in snapshot.names}

    def _note_reset(self, event: ResetEvent) -> None:
        snapshot, goes_back = event.snapshot, ResetScope.time in event.scope
        drones = snapshot.names if goes_back else event.drones
        begun = {name: Life(self.current[name].resets + 1, snapshot.tick) for name in drones}
        self.current = {**self.current, **begun}

    def _note_restore(self, checkpoint: Checkpoint) -> None:
        tick = checkpoint.about["tick"]
        self.current = {
            name: Life(life.resets, min(life.tick, tick)) for name, life in self.current.items()
        }
