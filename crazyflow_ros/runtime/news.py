"""What others are told when the state has changed other than by a tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from crazyflow_ros.engine.disturbances import Disturbance
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.resets import ResetEvent
from crazyflow_ros.runtime.schedule import SnapshotCallback
from crazyflow_ros.runtime.simulation import Simulation

T = TypeVar("T")


class Setting(NamedTuple):
    """A request that left the state as it was, and changed how it goes on."""

    request: str
    """Name of the method of `PhysicsThread`."""
    arguments: Mapping[str, Any]
    """Its arguments by name."""


class News:
    """Callbacks, which the physics thread calls. They are added before it starts.

    Args:
        simulation: The simulation that changes.
        health: Logs failures of callbacks.

    Attributes:
        of_resets: Called after each reset, before anyone sees the new state.
        of_changes: Called at the start, and after each request that changed the state.
        of_restores: Called before the state and the time become those of a checkpoint.
        of_disturbances: Called when a disturbance begins; `of_changes` follow.
        of_settings: Called when a `Setting` has taken effect.
    """

    def __init__(self, simulation: Simulation, health: Health) -> None:
        self._simulation, self._health = simulation, health
        self.of_resets: list[Callable[[ResetEvent], None]] = []
        self.of_changes: list[SnapshotCallback] = []
        self.of_restores: list[Callable[[Checkpoint], None]] = []
        self.of_disturbances: list[Callable[[Disturbance], None]] = []
        self.of_settings: list[Callable[[Setting], None]] = []

    def show(self, tick: int | None = None) -> None:
        """Publish the state, of the present tick or another, at the start and after a change."""
        self._simulation.refresh(self._simulation.snapshot.tick if tick is None else tick)
        self._simulation.hand_out()
        self._tell("change callback", self.of_changes, self._simulation.snapshot)

    def tell_reset(self, event: ResetEvent, fill_initial_state: bool | None = None) -> None:
        """Tell everyone of a reset, and publish the state after it.

        Args:
            event: The reset.
            fill_initial_state: For the mirror's reset callback; None if it is not called.
        """
        simulation = self._simulation
        simulation.lives.note_reset(event)
        self._tell("reset callback", self.of_resets, event)
        simulation.hand_out()
        if fill_initial_state is not None:
            notify = simulation.mirror.notify_reset
            self._health.call("reset callback of the mirror", notify, fill_initial_state)
        self._tell("change callback", self.of_changes, simulation.snapshot)

    def tell_restore(self, checkpoint: Checkpoint) -> None:
        """Tell everyone that the state is about to become that of a checkpoint."""
        self._tell("restore callback", self.of_restores, checkpoint)

    def tell_disturbance(self, disturbance: Disturbance) -> None:
        """Tell everyone that a disturbance begins."""
        self._tell("disturbance callback", self.of_disturbances, disturbance)

    def tell_setting(self, request: str, **arguments: Any) -> None:
        """Tell everyone of a `Setting` that has taken effect."""
        self._tell("setting callback", self.of_settings, Setting(request, arguments))

    def _tell(self, what: str, callbacks: Sequence[Callable[[T], None]], news: T) -> None:
        for callback in callbacks:
            self._health.call(what, callback, news)
