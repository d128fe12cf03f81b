"""/clock: simulation time, on the grid of the physics ticks."""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING

from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock

from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

TOPIC = "/clock"
_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
_REPEAT_PERIOD = 0.5  # s of wall time


class ClockTopic:
    """Publishes the time, and repeats it while it stands still, for late subscribers."""

    def __init__(self, simulator: SimulatorNode) -> None:
        publisher = simulator.create_publisher(Clock, TOPIC, _QOS)
        self._publish_raw = publisher.handle.publish_raw
        # The most frequent message is assembled by hand: two numbers follow.
        self._encapsulation = serialize_message(Clock())[:4]
        self._latest: bytes | None = None
        self._repeated: bytes | None = None
        # Guards against a repetition after a later time.
        self._in_order = threading.Lock()
        rate_hz = simulator.parameters.publish_rates.clock
        simulator.physics.every(rate_hz, self._publish, "publish_rates.clock", observes=True)
        simulator.create_timer(_REPEAT_PERIOD, self._repeat)

    def _publish(self, snapshot: Snapshot) -> None:
        numbers = struct.pack("=iI", *divmod(snapshot.time_ns, 1_000_000_000))
        with self._in_order:
            self._latest = self._encapsulation + numbers
            self._publish_raw(self._latest)

    def _repeat(self) -> None:
        with self._in_order:
            if self._latest is not None and self._latest is self._repeated:
                self._publish_raw(self._latest)
            self._repeated = self._latest


def declare(simulator: SimulatorNode) -> None:
    """Add the topic."""
    ClockTopic(simulator)
