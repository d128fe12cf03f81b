"""The status of a simulator and of its drones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray

from crazyflow_ros.ros.messages import xyz


@dataclass(frozen=True)
class DroneStatus:
    """A drone of a simulator."""

    name: str
    state: str
    """idle, taking off, flying, landing, landed, crashed, locked or lost."""
    position: np.ndarray
    """Position in the map [m], shape (3,)."""
    battery: str
    """Voltage and charge; empty if the batteries are not simulated."""
    trouble: str
    """What is wrong with it, or an empty string."""


@dataclass(frozen=True)
class SimulatorStatus:
    """The latest message of the topic `~/status`."""

    text: str
    """The simulation in a few words."""
    values: dict[str, str]
    """All values of the simulation by name, such as `tick`."""
    troubles: dict[str, str]
    """What is wrong with a drone or a part of the simulator, by its name."""

    @classmethod
    def of(cls, message: DiagnosticArray) -> SimulatorStatus:
        """Read a message."""
        first, *others = message.status
        values = {pair.key: pair.value for pair in first.values}
        troubles = {other.name.rpartition(": ")[2]: other.message for other in others}
        return cls(first.message, values, troubles)

    def state_of(self, drone: str) -> str:
        """Return the state of a drone, see `DroneStatus`; `unknown` if it is not known."""
        return self.values.get(f"state of {drone}", "unknown")

    def drone(self, name: str, pose: Any) -> DroneStatus:
        """Return the status of a drone with a pose."""
        return DroneStatus(
            name=name,
            state=self.state_of(name),
            position=xyz(pose.position),
            battery=self.values.get(f"battery of {name}", ""),
            trouble=self.troubles.get(name, ""),
        )
