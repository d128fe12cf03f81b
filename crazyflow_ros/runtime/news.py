"""Callbacks by which the physics thread tells others what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.engine.disturbances import Disturbance
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import FlightEvent, Setpoint
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.health import Callbacks, Health
from crazyflow_ros.runtime.resets import ResetEvent


class Setting(NamedTuple):
    """A request that did not change the state, but how it evolves from then on."""

    request: str
    """Name of the method that carries it out, such as `tune`."""
    arguments: Mapping[str, Any]
    """Arguments of the method by name."""


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
        on_body_wrench: The external forces on other bodies have changed: the state, and forces and
            torques (6,) from then on by the bodies' names; there are none on others.
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
        self.on_body_wrench = Callbacks[Snapshot, Mapping[str, np.ndarray]](
            "body wrench callback", health
        )
        self.on_reset = Callbacks[ResetEvent]("reset callback", health)
        self.on_restore = Callbacks[Checkpoint]("restore callback", health)
        self.on_disturbance = Callbacks[Disturbance]("disturbance callback", health)
        self.on_setting = Callbacks[Setting]("setting callback", health)
        self.on_change = Callbacks[Snapshot]("change callback", health)
        self.on_failure = Callbacks[BaseException]("failure callback", health)
