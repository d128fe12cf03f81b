"""/clock: simulation time, on the grid of the physics ticks."""

from __future__ import annotations

import struct
import threading
import time
from typing import TYPE_CHECKING

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from crazyflow_ros.ros.messages.serialisation import serialised
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

TOPIC = "/clock"
_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
_REPEAT_PERIOD = 0.5  # s of wall time
_LEASE = 25.0  # s for which a process that was killed may stay in the ROS graph, 20 with Fast DDS


class ClockTopic:
    """Publishes the time, and repeats it while it stands still, for late subscribers."""

    def __init__(self, simulator: Host) -> None:
        publisher = simulator.create_publisher(Clock, TOPIC, _QOS)
        self._publish_raw = publisher.handle.publish_raw
        # The most frequent message is assembled by hand: this header, then two numbers.
        self._encapsulation = serialised(Clock())[:4]
        self._latest: bytes | None = None
        self._repeated: bytes | None = None
        # Keeps a repeated time from being sent after a later one.
        self._in_order = threading.Lock()
        rate_hz = simulator.parameters.publish_rates.clock
        simulator.physics.every(rate_hz, self._publish, "publish_rates.clock", observes=True)
        simulator.regular_calls.add(self._repeat, _REPEAT_PERIOD)
        rivals = Rivals(simulator.node)
        simulator.regular_calls.add(lambda: rivals.look(time.monotonic()), _REPEAT_PERIOD)

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


class Rivals:
    """Warns of other nodes that publish the clock: with two, time jumps back and forth."""

    def __init__(self, node: Node) -> None:
        self._node, self._topic = node, node.resolve_topic_name(TOPIC)
        self._since: float | None = None  # wall time at which the present rivals were first seen
        self._warned = False

    def look(self, now: float) -> None:
        """Check the ROS graph at a wall time [s]; warn once about each set of rivals."""
        if self._node.count_publishers(self._topic) < 2:
            self._since, self._warned = None, False
            return
        self._since = now if self._since is None else self._since
        if now - self._since < _LEASE or self._warned:
            return
        self._warned = True
        found = self._node.get_publishers_info_by_topic(self._topic)
        names = sorted(f"{at.node_namespace.rstrip('/')}/{at.node_name}" for at in found)
        self._node.get_logger().warning(
            f"{self._topic} has {len(names)} publishers ({', '.join(names)}), so time jumps back "
            "and forth: give each simulator a ROS_DOMAIN_ID of its own, or a namespace and clock"
        )
