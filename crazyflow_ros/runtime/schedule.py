"""The schedule: when ticks are due in wall time, and which callbacks run at which tick."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.health import Health

SnapshotCallback = Callable[[Snapshot], None]

_STALL = 0.1  # s of delay beyond which the schedule restarts instead of catching up
_WINDOW = 2.0  # s over which the achieved factor is measured


class Pacer:
    """Schedule of ticks at a real-time factor, anchored at one tick and wall time.

    Attributes:
        factor: Simulated seconds per second; 0 is as fast as possible.
        overruns: How often ticks were done later than the next ones were due.
        stalls: How often they were so late that the schedule restarted.
    """

    def __init__(self, freq: int, factor: float) -> None:
        self._tick_s = 1 / freq
        self.factor = factor
        self.overruns = self.stalls = 0
        self._anchor_tick, self._anchor_time = 0, time.monotonic()
        self._history: deque[tuple[float, int]] = deque()

    def anchor(self, tick: int) -> None:
        """Restart the schedule: `tick` is due now."""
        self._anchor_tick, self._anchor_time = tick, time.monotonic()

    def restart(self, tick: int) -> None:
        """Restart the schedule and the measurement, at a pause, or after a jump of the tick."""
        self._history.clear()
        self.anchor(tick)

    def wait(self, tick: int) -> float:
        """Seconds until `tick` is due; 0 if it is, or if there is no schedule."""
        if self.factor == 0:
            return 0.0
        due = self._anchor_time + (tick - self._anchor_tick) * self._tick_s / self.factor
        return max(0.0, due - time.monotonic())

    def due(self) -> float:
        """The latest tick that is due; infinity if there is no schedule."""
        if self.factor == 0:
            return math.inf
        passed = time.monotonic() - self._anchor_time
        return self._anchor_tick + passed * self.factor / self._tick_s

    def done(self, tick: int, n_ticks: int) -> None:
        """Record that the `n_ticks` up to `tick` are done, and whether they were in time."""
        now = time.monotonic()
        if not self._history or now - self._history[-1][0] > _WINDOW / 20:
            self._history.append((now, tick))
            while now - self._history[0][0] > _WINDOW:
                self._history.popleft()
        if self.factor == 0:
            return
        period = self._tick_s / self.factor
        late = now - self._anchor_time - (tick - self._anchor_tick) * period
        if late > _STALL:
            self.stalls += 1
            self.anchor(tick)
        elif late > n_ticks * period:
            self.overruns += 1

    def achieved_factor(self) -> float:
        """Simulated seconds per second over the last two seconds; 0 while time stands still."""
        history = list(self._history)
        if len(history) < 2 or time.monotonic() - history[-1][0] > _WINDOW:
            return 0.0
        (start, first), (end, last) = history[0], history[-1]
        return (last - first) * self._tick_s / (end - start)


class Events:
    """Callbacks, each at its rate. If one fails, the others are still called.

    Args:
        freq: Ticks per simulated second.
        health: Logs failures.
    """

    def __init__(self, freq: int, health: Health) -> None:
        self._freq, self._health = freq, health
        self.callbacks: list[tuple[int, SnapshotCallback, str]] = []
        """Period, function and name of each."""
        self.periods: set[int] = set()
        """Ticks between two calls, for all callbacks."""
        self.acting: set[int] = set()
        """Ticks between two calls, for the callbacks that may command drones."""

    def add(
        self, rate_hz: int, callback: SnapshotCallback, name: str, *, observes: bool = False
    ) -> None:
        """Call `callback` at a rate. One that only observes may see several events in a row.

        Raises:
            ValueError: The rate does not divide `freq`; the message uses `name`.
        """
        period = ticks_per_period(self._freq, rate_hz, name)
        self.callbacks.append((period, callback, name))
        self.periods.add(period)
        if not observes:
            self.acting.add(period)

    def fire(self, snapshot: Snapshot, *, every: bool = False) -> None:
        """Call the callbacks that are due, or all, in the order in which they were added."""
        for period, callback, name in self.callbacks:
            if every or snapshot.tick % period == 0:
                self._health.call(name, callback, snapshot)
