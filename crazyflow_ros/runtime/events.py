"""Events: callbacks on exact multiples of the tick."""

from __future__ import annotations

from collections.abc import Callable

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.health import Health

SnapshotCallback = Callable[[Snapshot], None]


class Events:
    """Callbacks at rates. One that fails is noted, and the others are called.

    Args:
        freq: Ticks per second.
        health: Takes note.
    """

    def __init__(self, freq: int, health: Health) -> None:
        self._freq, self._health = freq, health
        self._events: list[tuple[int, SnapshotCallback, str]] = []
        self.periods: set[int] = set()
        """Ticks between two calls, of all callbacks."""
        self.acting: set[int] = set()
        """Of those that may tell the drones something."""

    def add(
        self, rate_hz: int, callback: SnapshotCallback, name: str, *, observes: bool = False
    ) -> None:
        """Call `callback` at a rate. One that only observes may see several events in a row.

        Raises:
            ValueError: The rate does not divide `freq`; the message uses `name`.
        """
        period = ticks_per_period(self._freq, rate_hz, name)
        self._events.append((period, callback, name))
        self.periods.add(period)
        if not observes:
            self.acting.add(period)

    def fire(self, snapshot: Snapshot, *, every: bool = False) -> None:
        """Call those that are due, in the order in which they were added, or all."""
        health = self._health
        for period, callback, name in self._events:
            if every or snapshot.tick % period == 0:
                health.doing = name
                try:
                    callback(snapshot)
                except Exception as error:
                    health.note_failure(name, error)
