"""The connection between a Crazyflie's firmware and its drone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.runtime import PhysicsThread, Snapshot
from crazyflow_ros.runtime.drone_commands import Response
from crazyflow_ros.scene.frames import yaw


@dataclass(frozen=True)
class Pilot:
    """Commands the drone of a given name in a simulation."""

    physics: PhysicsThread
    name: str
    set_controller: Callable[[Controller], None]
    """Switches the controller, together with those of all drones of the simulation."""

    def command(self, setpoint: Setpoint) -> None:
        """Command the drone from the next tick on; the latest setpoint wins."""
        self.physics.command(self.name, setpoint)

    @property
    def estimates(self) -> bool:
        """Whether the drone flies on an estimate of its state."""
        return self.physics.snapshot.believed is not None

    def place(self) -> list[float]:
        """Return where the drone is: position [m] and yaw [rad]."""
        snapshot = self.physics.snapshot
        row = snapshot.names.index(self.name)
        return [*snapshot.pos[row].tolist(), float(yaw(snapshot.quat[row]))]

    def tune(self, controller: Controller, gains: Mapping[str, np.ndarray]) -> Future[Snapshot]:
        """Change gains of a controller of the drone, see `PhysicsThread.tune`."""
        return self.physics.tune(self.name, controller, gains)

    def ask(self, setpoint: Setpoint) -> Future[Response]:
        """Command the drone; the result says whether it refused."""
        return self.physics.fly({self.name: setpoint})
