"""Turns: time goes on when others agree, such as simulators on other hosts."""

from __future__ import annotations

from typing import Protocol


class Turns(Protocol):
    """Decides when a simulation may go on. Physics thread, unless stated.

    Attributes:
        waiting_for: Those whose answers are missing, in messages.
    """

    waiting_for: str

    def turn(self, *, due: bool, paused: bool) -> bool:
        """Do what is possible without waiting; return whether the next tick may be computed.

        Called before each stretch of ticks, and after requests; after False it is called again,
        at the latest after a fraction of a second.

        Args:
            due: The next tick is due, in wall time.
            paused: Time stands still, and no steps are under way.
        """

    def close(self) -> None:
        """Close at the end of the simulation. From any thread, possibly more than once."""
