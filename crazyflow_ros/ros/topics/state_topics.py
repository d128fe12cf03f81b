"""Topics with the state of the drones, which the physics thread publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.ros.messages.cdr import Layout, joined
from crazyflow_ros.ros.messages.numeric_message import NumericMessage
from crazyflow_ros.ros.messages.outbox import Row, SerialisedMessages
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

# A reliable publisher suits every subscriber: RViz requires it, others may use best effort.
# Messages are kept for resending; at twenty times real time these are the last 25 ms.
STATE_QOS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


ALL = ""
"""Stands for all drones in place of one."""

Suits = Callable[[Snapshot], bool]
"""Tells whether messages have been laid out for a state like this one."""


def of_drones(drones: Sequence[str]) -> Suits:
    """Return whether a state is that of these drones."""
    return lambda snapshot: snapshot.names == drones


class Addressed(NamedTuple):
    """Messages of one type, each with its publisher."""

    publishers: Mapping[str, Any]
    """The publishers by topic, in the order of the messages."""
    messages: Layout
    values: Callable[[Snapshot], Sequence[np.ndarray]]
    """Returns the numbers of the messages, see `NumericMessage`."""


class StateTopics:
    """Topics with the state of the drones, which have one message per period.

    Args:
        simulator: The node; the topics are those of its drones when they are added.
    """

    def __init__(self, simulator: Host) -> None:
        self._simulator = simulator
        self._senders: dict[int, StateSender] = {}  # by rate [Hz]
        simulator.for_all_drones(self._begin)  # before those who add topics do it again

    def _begin(self) -> None:
        for sender in self._senders.values():
            sender.begin(of_drones(self._simulator.drones))

    def add(self, rate: str, message: NumericMessage[Snapshot], topics: Mapping[str, str]) -> None:
        """Add topics of one type, in place of those of the same rate and type.

        Args:
            rate: Name of the publish rate, a field of `PublishRates`.
            message: The message.
            topics: The drone of each topic, or `ALL`; may be empty.
        """
        simulator = self._simulator
        rate_hz: int = getattr(simulator.parameters.publish_rates, rate)
        if rate_hz == 0:
            return
        if rate_hz not in self._senders:
            self._senders[rate_hz] = StateSender(
                simulator, rate_hz, f"publish_rates.{rate}", of_drones(simulator.drones)
            )
        create, kind = simulator.listeners.create_publisher, message.kind
        publishers = {topic: create(kind, topic, STATE_QOS) for topic in topics}
        added = None
        if topics:
            values = _of_some(message.values, simulator.drones, [*topics.values()])
            added = Addressed(publishers, message.layout(topics.values()), values)
        self._senders[rate_hz].put((rate, kind), added)


Values = Callable[[Snapshot], Sequence[np.ndarray]]


def _of_some(values: Values, drones: Sequence[str], own: Sequence[str]) -> Values:
    """Return the numbers of some of the drones, with a row for each in every block."""
    if own == [ALL] or list(drones) == own:
        return values
    numbers = {drone: row for row, drone in enumerate(drones)}
    rows = [numbers[drone] for drone in own]
    return lambda snapshot: [block[rows] for block in values(snapshot)]


class StateSender:
    """Sends the messages of all topics with the same rate, in the physics thread.

    Nothing is computed for topics without subscribers. A new one receives the first message within
    0.2 s, also while time stands still; during a step, when it is due.
    """

    def __init__(self, simulator: Host, rate_hz: int, name: str, suits: Suits) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        self._period = ticks_per_period(self._physics.freq, rate_hz, name)
        self.begin(suits)
        self._physics.every(rate_hz, self._send, name, observes=True)
        simulator.listeners.follow(self._address)

    def begin(self, suits: Suits) -> None:
        """Remove all topics, before those of other drones or bodies are added."""
        self._suits = suits
        self._delivery = Delivery(suits, [], set())
        self._topics: dict[tuple[str, Any], Addressed] = {}
        self._counts: dict[str, int] = {}
        self._newcomers: set[str] = set()  # topics with subscribers to whom nothing may be sent yet
        self._is_addressed = True

    def put(self, key: tuple[str, Any], topics: Addressed | None) -> None:
        """Replace the topics of one type; None removes them."""
        self._topics.pop(key, None)
        if topics is not None:
            self._topics[key] = topics
        self._is_addressed = False

    def _send(self, snapshot: Snapshot) -> None:
        self._delivery.send(snapshot)

    def _address(self) -> None:
        """Address the current subscribers; while time stands still, send to new ones at once."""
        listeners, before = self._simulator.listeners, self._counts
        of_types = [*self._topics.values()]
        topics = [topic for topics in of_types for topic in topics.publishers]
        counts = {topic: listeners.count(topic) for topic in topics}
        new = {topic for topic, n in counts.items() if n > before.get(topic, 0)}
        new |= listeners.newly_heard.intersection(topics)
        if not self._delivery.is_sent:  # time may have begun to stand still before it was due
            new |= self._newcomers
        if self._is_addressed and counts == before and not new:
            return
        heard = {topic for topic, n in counts.items() if n}
        self._delivery = Delivery(self._suits, of_types, heard)
        to_newcomers = Delivery(self._suits, of_types, new)
        self._counts, self._is_addressed, self._newcomers = counts, True, new

        def show(snapshot: Snapshot) -> None:
            if not (self._physics.loop.stepping and snapshot.tick % self._period):
                to_newcomers.send(snapshot)

        if self._physics.paused:
            self._newcomers = set()
            # In the physics thread: it may be stepping, so that readings of the mirror would belong
            # to a later tick than a snapshot taken here.
            self._physics.show_to(show)


class Delivery:
    """The messages of some topics.

    Args:
        suits: Tells for which states the messages are laid out.
        topics: Topics of several types.
        wanted: Names of the topics to send.

    Attributes:
        is_sent: Whether a state has been sent.
    """

    def __init__(self, suits: Suits, topics: Sequence[Addressed], wanted: set[str]) -> None:
        self._suits, self.is_sent = suits, False
        self._topics = [t for t in topics if not wanted.isdisjoint(t.publishers)]
        if self._topics:
            messages = SerialisedMessages(joined([t.messages for t in self._topics]))
            publishers = chain.from_iterable(t.publishers.items() for t in self._topics)
            addresses = [(i, p) for i, (topic, p) in enumerate(publishers) if topic in wanted]
            self._row = Row(messages, addresses)

    def send(self, snapshot: Snapshot) -> None:
        """Send the state at a snapshot, unless drones or bodies have come or gone meanwhile."""
        if self._topics and self._suits(snapshot):
            blocks = [block for topics in self._topics for block in topics.values(snapshot)]
            self._row.send(snapshot.time_ns, blocks)
            self.is_sent = True
