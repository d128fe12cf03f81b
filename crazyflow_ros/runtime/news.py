"""What others are told: callbacks of the physics thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVarTuple

import numpy as np

from crazyflow_ros.engine.disturbances import Disturbance
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import FlightEvent, Setpoint
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.resets import ResetEvent

Ts = TypeVarTuple("Ts")


class Setting(NamedTuple):
    """A request that left the state as it was, and changed how it goes on."""

    request: str
    """Name of the method that carries it out, such as `tune`."""
    arguments: Mapping[str, Any]
    """Its arguments by name."""


class Callbacks(Generic[*Ts]):
    """Functions that the physics thread calls; call this object with a function to add it.

    Functions are added before the thread starts, and must not wait for a request. If one fails, the
    failure is logged and the others are still called.

    Args:
        what: What these functions are, in messages.
        health: Logs failures.
    """

    def __init__(self, what: str, health: Health) -> None:
        self._what, self._health = what, health
        self._callbacks: list[Callable[[*Ts], object]] = []

    def __call__(self, callback: Callable[[*Ts], object]) -> None:
        """Add a function."""
        self._callbacks.append(callback)

    def tell(self, *news: *Ts) -> None:
        """Call all functions. Physics thread."""
        for callback in self._callbacks:
            self._health.call(self._what, callback, *news)


class News:
    """All that happens besides ticks. `PhysicsThread.every` tells of ticks.

    Args:
        health: Logs failures of callbacks.

    Attributes:
        on_command: A setpoint has taken effect: drone, setpoint, and the tick from which the drone
            follows it.
        on_flight_event: Something has happened to a drone, such as a crash or a hit.
        on_wrench: The external forces on drones have changed: the state, and the forces and torques
            from then on, as `Wrenches.take` returns them.
        on_reset: A reset has been carried out; nobody has seen the new state yet.
        on_restore: State and time are about to become those of a checkpoint.
        on_disturbance: A disturbance begins; `on_change` follows.
        on_setting: A `Setting` has taken effect, such as gains or a controller.
        on_change: A request has changed the state. Also called at the start.
        on_failure: An exception has ended the thread.
    """

    def __init__(self, health: Health) -> None:
        self.on_command = Callbacks[str, Setpoint, int]("command callback", health)
        self.on_flight_event = Callbacks[FlightEvent]("flight event callback", health)
        self.on_wrench = Callbacks[Snapshot, np.ndarray]("wrench callback", health)
        self.on_reset = Callbacks[ResetEvent]("reset callback", health)
        self.on_restore = Callbacks[Checkpoint]("restore callback", health)
        self.on_disturbance = Callbacks[Disturbance]("disturbance callback", health)
        self.on_setting = Callbacks[Setting]("setting callback", health)
        self.on_change = Callbacks[Snapshot]("change callback", health)
        self.on_failure = Callbacks[BaseException]("failure callback", health)
