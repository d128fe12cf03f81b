"""What all topics with the state of the drones have in common."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.cdr import SerialisedMessages
    from crazyflow_ros.ros.simulator import Simulator

# A reliable publisher suits every subscriber: RViz asks for it, others may take best effort.
STATE_QOS = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
LATCHED_QOS = QoSProfile(
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

_RECOUNT_PERIOD = 0.2  # s of wall time


class StateTopics(ABC):
    """Topics of one type, each with one message per period, sent by the physics thread.

    Nothing is computed for topics without subscribers. Those are counted now and then: a new
    subscriber hears the first message within 0.2 s, also while time stands still.

    Args:
        simulator: The node.
        rate: Name of the publish rate, a field of `PublishRates`.
        message_type: Type of the messages.
        topics: Names of the topics.
        messages: One message per topic.
    """

    def __init__(
        self,
        simulator: Simulator,
        rate: str,
        message_type: Any,
        topics: Sequence[str],
        messages: SerialisedMessages,
    ) -> None:
        self._messages = messages
        self._physics = simulator.physics
        self._snapshot = simulator.physics.snapshot
        self._counts = [0] * len(topics)
        self._wanted: list[int] = []
        # So that what a newcomer is told never follows something later.
        self._in_order = threading.Lock()
        rate_hz: int = getattr(simulator.parameters.publish_rates, rate)
        if rate_hz == 0:
            return
        self._publishers = [
            simulator.create_publisher(message_type, topic, STATE_QOS) for topic in topics
        ]
        # Not publish(), which checks every time what cannot change here, and takes twice as long.
        self._publish_raw = [publisher.handle.publish_raw for publisher in self._publishers]
        simulator.physics.every(rate_hz, self._publish, f"publish_rates.{rate}")
        simulator.create_timer(_RECOUNT_PERIOD, self._recount)

    @abstractmethod
    def numbers(self, snapshot: Snapshot) -> np.ndarray:
        """The numbers of all messages at a snapshot, float64 in rows without gaps."""

    def _recount(self) -> None:
        counts = [publisher.get_subscription_count() for publisher in self._publishers]
        with self._in_order:
            newcomers = [i for i, before in enumerate(self._counts) if counts[i] > before]
            self._counts = counts
            self._wanted = [i for i, count in enumerate(counts) if count]
            if self._physics.paused:
                self._send(newcomers)

    def _publish(self, snapshot: Snapshot) -> None:
        with self._in_order:
            self._snapshot = snapshot
            self._send(self._wanted)

    def _send(self, indices: Sequence[int]) -> None:
        if not indices:
            return
        self._messages.update(self._snapshot.time_ns, self.numbers(self._snapshot))
        for i in indices:
            self._publish_raw[i](self._messages.payload(i))
