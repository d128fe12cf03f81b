"""Delays of packets on a link."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count

from crazyflow_ros.crazyflie.link_config import LinkConfig

_MOST = 10_000  # packets under way


class PacketPassage:
    """Delivers packets with the delay of a link. From any thread.

    Args:
        config: The link.
        clock: Returns the time of the link [ns].
        wake: Called when a packet is under way.
    """

    def __init__(
        self, config: LinkConfig, clock: Callable[[], int], wake: Callable[[], object]
    ) -> None:
        self._config, self._clock, self._wake = config, clock, wake
        self._lock = threading.Lock()  # guards everything below
        self._under_way: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def take(self, deliver: Callable[[], None]) -> None:
        """Deliver a packet at once or in `deliver_due`."""
        if not self._config.latency:
            deliver()
            return
        with self._lock:
            if len(self._under_way) >= _MOST:
                return
            due = self._clock() + round(self._config.latency * 1e9)
            heapq.heappush(self._under_way, (due, next(self._order), deliver))
        self._wake()

    def next_due(self) -> int | None:
        """Return when the next packet arrives [ns]; None if none is under way."""
        with self._lock:
            return self._under_way[0][0] if self._under_way else None

    def deliver_due(self) -> None:
        """Deliver the packets that arrive now."""
        while True:
            with self._lock:
                if not self._under_way or self._under_way[0][0] > self._clock():
                    return
                _, _, deliver = heapq.heappop(self._under_way)
            deliver()
