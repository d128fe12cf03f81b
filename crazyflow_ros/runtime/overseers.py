"""Who decides in place of the flight supervisor when rotors stop."""

from __future__ import annotations

from typing import Protocol

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import Setpoint


class Overseers(Protocol):
    """The firmware of all drones.

    The physics thread calls it.
    """

    rate: int
    """Checks per simulated second, at most the frequency of the physics."""

    def check(self, now: Snapshot) -> None:
        """Look at the drones; called at multiples of a period."""

    def note(self, name: str, setpoint: Setpoint) -> None:
        """Note that a setpoint of a drone has taken effect."""


class RecordedOverseers:
    """Takes the place of the firmware in a replay: what it decided is part of the recording."""

    rate = 25

    def check(self, now: Snapshot) -> None:
        """See `Overseers`."""

    def note(self, name: str, setpoint: Setpoint) -> None:
        """See `Overseers`."""
