"""The link between simulated Crazyflies and their clients: ports, losses and delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crazyflow_ros.crazyflie.decks import DECKS

FIRST_PORT = 19850
"""Port of the first drone; cflib looks for drones on ten ports from here on."""

PROBE = b"\xff"
"""Packet without meaning, to which programs that look for drones expect an answer."""

LEAST_PORT, MOST_PORT = 1024, 65535
"""Ports that users may open; lower ones belong to the system."""


@dataclass(frozen=True)
class LinkConfig:
    """The link between the Crazyflies and their clients."""

    address: str = "127.0.0.1"
    """Address of the network interface; 0.0.0.0 for all."""
    port: int = FIRST_PORT
    """Port of the first drone; the others follow."""
    decks: Sequence[str] = ("bcFlow2", "bcMultiranger")
    """Expansion decks of each drone, see `decks.DECKS`."""
    anchors: Sequence[float] = ()
    """x, y, z [m] of each radio anchor, see `positioning`."""
    loss: float = 0.0
    """Share of packets that get lost, each way."""
    latency: float = 0.0
    """Delay of packets [s of wall time], each way."""
    storage: str = ""
    """Folder in which stored parameters survive a restart, see `storage`; empty for none."""
    seed: int = 0
    """Seed of the losses."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: A number is out of range, or a deck is unknown.
        """
        if not LEAST_PORT <= self.port <= MOST_PORT:
            raise ValueError(f"port must be from {LEAST_PORT} to {MOST_PORT}, got {self.port}")
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss must be from 0 to less than 1, got {self.loss:g}")
        if not 0 <= self.latency <= 10:
            raise ValueError(f"latency must be from 0 to 10 s, got {self.latency:g}")
        for deck in self.decks:
            if deck not in DECKS:
                # Imports NumPy, whose threads would take the signals of a program that starts.
                from crazyflow_ros.checks.limits import unknown

                raise ValueError(unknown("deck", deck, DECKS))
