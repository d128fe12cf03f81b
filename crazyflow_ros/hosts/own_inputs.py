"""Control inputs that users of a mirror give to the drones of one of several simulators."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.runtime import PhysicsThread, ResetEvent
from crazyflow_ros.runtime.mirror_inputs import MirrorInputs
from crazyflow_ros.runtime.state_changes import StateChanges
from crazyflow_ros.scene import Controls


class OwnInputs(MirrorInputs):
    """The `MirrorInputs` of a simulator that shares its time: they wait for the next round.

    Args:
        physics: The physics thread.
        state: Changes the state in all simulators.
    """

    def __init__(self, physics: PhysicsThread, state: StateChanges) -> None:
        loop, news, health = physics.loop, physics.news, physics.health
        super().__init__(physics.simulation, state, loop.requests, news, health)
        self._physics = physics
        news.on_reset(self._forget)

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        """See `MirrorInputs`; those of drones of other simulators must be zero.

        Raises:
            ValueError: There is a force on a drone that another simulator owns.
        """
        masters = self._physics.masters
        for load in controls.loads:
            if load.drone in masters:
                raise ValueError(f"{load.drone} obeys {masters[load.drone]} alone")
        own = [row for row, name in enumerate(names) if name not in masters]
        kept = Controls(controls.rotor_speed[own], controls.loads)
        self.post([names[row] for row in own], kept)

    def _forget(self, event: ResetEvent) -> None:
        """Drop rotor speeds that were meant for the flight so far."""
        with self._lock:
            self._rotors = {k: x for k, x in self._rotors.items() if k not in event.drones}
