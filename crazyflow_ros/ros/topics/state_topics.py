"""What all topics with the state of the drones have in common."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.event_handler import PublisherEventCallbacks, UnsupportedEventTypeError
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from crazyflow_ros.ros.messages.cdr import Layout, SerialisedMessages, joined
from crazyflow_ros.ros.messages.outbox import Outbox
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

# A reliable publisher suits every subscriber: RViz asks for it, others may take best effort.
# Messages are kept for resending; at twenty times real time these are the last 25 ms.
STATE_QOS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

_RECOUNT_PERIOD = 0.2  # s of wall time


class StateTopics(ABC):
    """Topics of one type, each with one message per period.

    Args:
        simulator: The node.
        rate: Name of the publish rate, a field of `PublishRates`.
        message_type: Type of the messages.
        topics: Names of the topics.
        messages: One message per topic.
    """

    def __init__(
        self,
        simulator: SimulatorNode,
        rate: str,
        message_type: Any,
        topics: Sequence[str],
        messages: Layout,
    ) -> None:
        self.messages = messages
        rate_hz: int = getattr(simulator.parameters.publish_rates, rate)
        if rate_hz == 0:
            return
        if rate_hz not in simulator.senders:
            simulator.senders[rate_hz] = StateSender(simulator, rate_hz, f"publish_rates.{rate}")
        sender = simulator.senders[rate_hz]
        self.publishers = [sender.create_publisher(message_type, topic) for topic in topics]
        sender.add(self)

    @abstractmethod
    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """The numbers of all messages at a snapshot: a float64 array for each block."""


class StateSender:
    """Sends the messages of all topics with the same rate, in the physics thread.

    Nothing is computed for topics without subscribers. A new one hears the first message within
    0.2 s, also while time stands still.
    """

    def __init__(self, simulator: SimulatorNode, rate_hz: int, name: str) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        self._names = simulator.drones
        self._publishers: dict[str, Publisher[Any]] = {}
        self._topics: list[StateTopics] = []
        self._counts: list[list[int]] = []
        self._delivery = _Delivery([])
        self._changed, self._is_told = True, True
        self._in_order = threading.Lock()  # guards names and delivery, which go together
        self._physics.every(rate_hz, self._send, name, observes=True)
        simulator.create_timer(_RECOUNT_PERIOD, self.recount)

    def begin(self) -> None:
        """Forget all messages, to be given those of other drones; publishers are kept."""
        with self._in_order:
            self._names, self._delivery = self._simulator.drones, _Delivery([])
        self._topics, self._counts, self._changed = [], [], True

    def forget(self, prefix: str) -> None:
        """Forget publishers whose topics begin so."""
        gone = [t for t, p in self._publishers.items() if p.topic_name.startswith(prefix)]
        for topic in gone:
            del self._publishers[topic]

    def create_publisher(self, message_type: Any, topic: str) -> Publisher[Any]:
        """The publisher of a topic, of which this sender knows whether somebody listens."""
        if topic not in self._publishers:
            self._publishers[topic] = self._new_publisher(message_type, topic)
        return self._publishers[topic]

    def _new_publisher(self, message_type: Any, topic: str) -> Publisher[Any]:
        events = PublisherEventCallbacks(matched=self._note_change)
        try:
            return self._simulator.create_publisher(
                message_type, topic, STATE_QOS, event_callbacks=events
            )
        except UnsupportedEventTypeError:  # then they have to be counted now and then
            self._is_told = False
            return self._simulator.create_publisher(message_type, topic, STATE_QOS)

    def add(self, topics: StateTopics) -> None:
        """Send the messages of these topics, too."""
        self._topics.append(topics)
        self._counts.append([0] * len(topics.publishers))

    def _send(self, snapshot: Snapshot) -> None:
        with self._in_order:
            if snapshot.names == self._names:
                self._delivery.send(snapshot)

    def _note_change(self, _: Any) -> None:
        self._changed = True

    def recount(self) -> None:
        """Find out who listens, if that may have changed."""
        if self._is_told and not self._changed:
            return
        self._changed = False
        counts = [[p.get_subscription_count() for p in t.publishers] for t in self._topics]
        if counts == self._counts:
            return
        more = [[now > before for now, before in zip(*pair)] for pair in zip(counts, self._counts)]
        delivery, to_newcomers = self._delivery_to(counts), self._delivery_to(more)
        self._counts = counts
        with self._in_order:
            self._delivery = delivery

        def tell(snapshot: Snapshot) -> None:
            with self._in_order:
                if snapshot.names == self._names:
                    to_newcomers.send(snapshot)

        if self._physics.paused:
            # By the physics thread: it may be stepping, and readings of the mirror be those of a
            # later tick than a snapshot taken here.
            self._physics.show_to(tell)

    def _delivery_to(self, wanted: Sequence[Sequence[int]]) -> _Delivery:
        """To those topics for which there is no zero."""
        return _Delivery([(t, np.flatnonzero(w).tolist()) for t, w in zip(self._topics, wanted)])


class _Delivery:
    """Messages of several types, to be sent to certain topics.

    Args:
        addresses: Per type, which of the topics get their message.
    """

    def __init__(self, addresses: Sequence[tuple[StateTopics, list[int]]]) -> None:
        addresses = [(topics, indices) for topics, indices in addresses if indices]
        self._topics = [topics for topics, _ in addresses]
        if not addresses:
            return
        self._messages = SerialisedMessages(joined([topics.messages for topics in self._topics]))
        starts = np.cumsum([0] + [len(topics.publishers) for topics in self._topics])
        places = self._messages.places
        self._outbox = Outbox(
            [
                (topics.publishers[i], places[start + i])
                for (topics, indices), start in zip(addresses, starts)
                for i in indices
            ]
        )

    def send(self, snapshot: Snapshot) -> None:
        """Send the state at a snapshot."""
        if self._topics:
            blocks = [block for topics in self._topics for block in topics.numbers(snapshot)]
            self._messages.update(snapshot.time_ns, blocks)
            self._outbox.send(self._messages.words[None])
