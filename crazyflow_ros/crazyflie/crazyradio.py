"""A Crazyradio: packets wait for their turn on the air, and are sent again until they arrive.

The radio asks one drone after another, as cflib's driver does: it sends a packet, empty if there is
none, and receives one in the acknowledgement. The two bits of "safelink" let none get lost or
arrive twice. What happens in which time follows cflib's `radiodriver.py` and the firmware of
Crazyradio, nRF51 and STM32; see docs/reference/crazyflie_firmware.md.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from crazyflow_ros.crazyflie.air import AIR_RATES, SETTLING_NS

SENDS = 4
"""How often the radio sends a packet until it tells the computer that no answer came."""
GIVE_UP = 100
"""Number of such reports in a row after which cflib gives up a link."""
QUEUE = 208
"""Packets that wait in a drone: 200 in crtp.c, 1 in radiolink.c, 7 in the nRF51."""

_USB_NS = 750_000  # of a transfer, with what the computer does before; chosen for 500 packets/s
_EMPTY = 1  # byte of a packet without data
_LATEST = 100  # packets over which cflib averages the quality
_MOST_UP = 200  # packets of a program that wait


class QueuedPacket(NamedTuple):
    """A packet that waits for its turn."""

    size: int
    """Bytes."""
    deliver: Callable[[], None]


@dataclass(eq=False)
class RadioLink:
    """The link of a program to a drone.

    Args:
        radio: The radio.
        power: Returns the power received [dBm].
        on_lost: Called when the radio gives up.
        began: Time of its beginning [ns].

    Attributes:
        received: Number of packets that the drone has received, empty ones among them.
        sent: Number of packets that were sent, and sent again as long as none was acknowledged.
        acknowledged: Number of those that were acknowledged.
        dropped: Number of packets with log values for which there was no place.
    """

    radio: Crazyradio
    power: Callable[[], float]
    on_lost: Callable[[], None]
    began: int
    up: deque[QueuedPacket] = field(default_factory=deque)
    down: deque[QueuedPacket] = field(default_factory=deque)
    received: float = 0.0
    sent: float = 0.0
    acknowledged: float = 0.0
    dropped: int = 0
    current: QueuedPacket | None = (
        None  # what is sent until it is acknowledged; None: an empty packet
    )
    has_arrived: bool = False  # the current one, at the drone
    failures: int = 0  # in a row, to bring the current one
    marks: deque[float] = field(default_factory=lambda: deque([10.0], _LATEST))

    def leave(self) -> str:
        """End the link; return how it was."""
        return self.radio.leave(self)

    @property
    def is_busy(self) -> bool:
        """Whether packets wait."""
        return bool(self.up or self.down or self.current)

    def count(self, n: int, arrival: float) -> None:
        """Count n empty packets, of which a share arrives."""
        if n:
            self.failures, self.has_arrived = 0, False
        self.sent += n
        self.received += n * arrival
        self.acknowledged += n * arrival

    @property
    def quality(self) -> float:
        """Quality [percent], as cflib computes it from the retries of the latest packets."""
        return 10 * sum(self.marks) / len(self.marks)


class _Exchange(NamedTuple):
    """A packet to a drone, and its acknowledgement."""

    link: RadioLink
    end: int
    """When the computer knows [ns]."""
    retries: int
    arrives: bool
    is_acknowledged: bool
    down: QueuedPacket | None
    """What is in the acknowledgement."""


class Crazyradio:
    """A radio, and its links to drones. From any thread.

    Args:
        rate: Rate on the air, one of `air.AIR_RATES`.
        loss: Share of packets that are lost, however near the drones are.
        seed: Seed of the losses.
        clock: Returns the time of the link [ns].
    """

    def __init__(self, rate: str, loss: float, seed: object, clock: Callable[[], int]) -> None:
        self._rate, self._loss, self._clock = AIR_RATES[rate], loss, clock
        self._random = np.random.default_rng(seed)  # type: ignore[arg-type]
        self._lock = threading.Lock()  # guards everything below, and all links
        self._links: list[RadioLink] = []
        self._turn = 0
        self._free = clock()  # when the next exchange begins
        self._now: _Exchange | None = None
        self._is_delivering = False

    # Links.

    def join(self, power: Callable[[], float], on_lost: Callable[[], None]) -> RadioLink:
        """Begin to ask a drone; for the arguments see `RadioLink`."""
        with self._lock:
            self._skip()
            link = RadioLink(self, power, on_lost, self._free)
            self._links.append(link)
        return link

    def leave(self, link: RadioLink) -> str:
        """End a link; what waits is lost. Return how the link was, in words."""
        with self._lock:
            if link in self._links:
                self._skip()
                self._end(link)
            rate = link.acknowledged / max(1e-9 * (self._free - link.began), 1e-3)
        text = f"by radio {rate:.0f} packets/s each way, link quality {link.quality:.0f} %"
        return f"{text}, {link.dropped} log packets dropped" if link.dropped else text

    def _end(self, link: RadioLink) -> None:
        at = self._links.index(link)
        del self._links[at]
        self._turn = (self._turn - (at < self._turn)) % max(1, len(self._links))
        link.up.clear()
        link.down.clear()
        link.current = None
        if self._now is not None and self._now.link is link:
            self._now = None

    def up(self, link: RadioLink, size: int, deliver: Callable[[], None]) -> bool:
        """Send a packet to a drone; return whether there was place for it.

        Args:
            link: Its link.
            size: Bytes.
            deliver: Called when it arrives.
        """
        with self._lock:
            self._skip()
            if len(link.up) >= _MOST_UP:
                return False
            link.up.append(QueuedPacket(size, deliver))
        return True

    def down(
        self, link: RadioLink, size: int, deliver: Callable[[], None], *, may_drop: bool
    ) -> bool:
        """Send a packet of a drone; return whether there was place for it.

        Args:
            link: Its link.
            size: Bytes.
            deliver: Called when it arrives.
            may_drop: The firmware drops it if its queue is full, instead of waiting.
        """
        with self._lock:
            self._skip()
            if may_drop and len(link.down) >= QUEUE:
                link.dropped += 1
                return False
            if link in self._links:
                link.down.append(QueuedPacket(size, deliver))
        return True

    def reaches(self, power: float) -> bool:
        """Return whether a drone answers one who looks for it, who sends two times."""
        with self._lock:
            lost = self._lost(power, _EMPTY)
            return bool((self._random.random((2, 2)) >= lost).all(axis=1).any())

    # Time.

    def next_due(self) -> int | None:
        """Return when `run` has to be called [ns]; None if no packet waits."""
        with self._lock:
            exchange = self._next()
        return None if exchange is None else exchange.end

    def run(self) -> None:
        """Do what has been due until now."""
        while True:
            with self._lock:
                exchange = self._next()
                if exchange is None or exchange.end > self._clock():
                    self._skip()
                    return
                self._now, self._free, self._is_delivering = None, exchange.end, True
                deliveries = self._finish(exchange)
            try:
                for deliver in deliveries:
                    deliver()
            finally:
                self._is_delivering = False

    def _lost(self, power: float, size: int) -> float:
        """Return the share of packets of a size that get lost."""
        return 1 - (1 - self._loss) * (1 - self._rate.loss(power, size))

    def _begin_ns(self) -> int:
        """Return how long it takes until a packet is on the air, and the answer at the computer."""
        changes = len(self._links) > 1  # the address is a transfer of its own
        return (3 if changes else 2) * _USB_NS + SETTLING_NS

    def _next(self) -> _Exchange | None:
        """Return the exchange under way, or begin one if packets wait."""
        if self._now is None and any(link.is_busy for link in self._links):
            link = self._links[self._turn]
            self._turn = (self._turn + 1) % len(self._links)
            self._now = self._begin(link)
        return self._now

    def _begin(self, link: RadioLink) -> _Exchange:
        if not link.failures:
            link.current = link.up.popleft() if link.up else None
        up, down = link.current, link.down[0] if link.down else None
        sizes = up.size if up else _EMPTY, down.size if down else _EMPTY
        power = link.power()
        lost = [self._lost(power, size) for size in sizes]
        end, arrives = self._free + self._begin_ns(), False
        for retries in range(SENDS):  # noqa: B007, is read afterwards
            end += self._rate.time_ns(sizes[0])
            is_acknowledged = False
            if self._random.random() >= lost[0]:
                arrives = True
                is_acknowledged = bool(self._random.random() >= lost[1])
            if is_acknowledged:
                end += SETTLING_NS + self._rate.time_ns(sizes[1])
                break
            end += self._rate.retry_ns
        return _Exchange(link, end, retries, arrives, is_acknowledged, down)

    def _finish(self, exchange: _Exchange) -> list[Callable[[], None]]:
        """Return what an exchange delivers."""
        link, found = exchange.link, []
        link.sent += 1
        if exchange.arrives and not link.has_arrived:
            link.has_arrived = True
            link.received += 1
            if link.current is not None:
                found.append(link.current.deliver)
        if not exchange.is_acknowledged:
            link.failures += 1
            if link.failures == GIVE_UP:
                self._end(link)
                found.append(link.on_lost)
            return found
        link.marks.append(10.0 - exchange.retries)
        link.acknowledged += 1
        link.failures, link.has_arrived, link.current = 0, False, None
        if exchange.down is not None:
            found.append(link.down.popleft().deliver)
        return found

    def _skip(self) -> None:
        """Let the exchanges of empty packets pass that nobody has to see, at their mean times."""
        now = self._free if self._is_delivering else self._clock()
        if self._free >= now or self._now or any(link.is_busy for link in self._links):
            return
        if not self._links:
            self._free = now
            return
        empties = [self._empty(link) for link in self._links]
        rounds = (now - self._free) // sum(duration for duration, _ in empties)
        for link, (duration, arrival) in zip(self._links, empties):
            self._free += rounds * duration
            link.count(rounds, arrival)
        while self._free < now:  # what has begun ends before another packet's turn
            duration, arrival = empties[self._turn]
            self._links[self._turn].count(1, arrival)
            self._free += duration
            self._turn = (self._turn + 1) % len(self._links)

    def _empty(self, link: RadioLink) -> tuple[int, float]:
        """Return the mean duration of an exchange of empty packets [ns], and how many succeed."""
        fails = 1 - (1 - self._lost(link.power(), _EMPTY)) ** 2
        answered = 1 - fails**SENDS
        failed = sum(fails**k for k in range(1, SENDS + 1))  # mean number of sends without answer
        time = self._rate.time_ns(_EMPTY)
        mean = failed * (time + self._rate.retry_ns) + answered * (2 * time + SETTLING_NS)
        return self._begin_ns() + round(mean), answered
