"""~/display/odometry and ~/display/joint_states: the swarm's topics for programs that draw.

They have at most 30 messages in a second of wall time. At twenty times real time, ~/odometry has
two thousand, which slow the simulation down, and of which nobody sees more than a few.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rclpy.qos import QoSProfile, ReliabilityPolicy

from crazyflow_ros.ros.messages.cdr import SerialisedMessages, joined, layout
from crazyflow_ros.ros.messages.outbox import Row
from crazyflow_ros.ros.topics.swarm import swarm_messages
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

DISPLAY = "display"
"""Namespace of the topics, below that of the node."""

_RATE = 30  # Hz of wall time
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_MATCHING = 1.0  # s of wall time in which a new subscriber may not be ready yet


class DisplayTopics:
    """Publishes the latest state, in the executor's thread.

    It computes nothing without subscribers, or while the state stays the same. Recordings do not
    contain these messages, which depend on wall time.
    """

    def __init__(self, simulator: SimulatorNode) -> None:
        self._physics, self._listeners = simulator.physics, simulator.listeners
        create = self._listeners.create_publisher
        self._publishers = {
            f"~/{DISPLAY}/{name}": create(
                type(message.prototype), f"~/{DISPLAY}/{name}", _QOS, recorded=False
            )
            for name, message in swarm_messages(()).items()
        }
        self._arrange(())
        self._shown: Snapshot | None = None
        self._count, self._came = 0, 0.0  # subscriptions, and when the latest one came
        simulator.create_timer(1 / _RATE, self._send)

    def _send(self) -> None:
        now, count = time.monotonic(), sum(map(self._listeners.count, self._publishers))
        if count > self._count:
            self._came = now
        self._count, snapshot = count, self._physics.snapshot
        if not count or (snapshot is self._shown and now - self._came > _MATCHING):
            return
        if snapshot.names != self._drones:
            self._arrange(snapshot.names)
        self._shown = snapshot
        blocks = [block for message in self._messages for block in message.read(snapshot)]
        self._row.send(snapshot.time_ns, blocks)

    def _arrange(self, drones: Sequence[str]) -> None:
        """Lay out the messages for these drones."""
        self._drones = drones
        self._messages = list(swarm_messages(drones).values())
        layouts = [layout([m.prototype], ["header.stamp"], m.numbers) for m in self._messages]
        self._row = Row(
            SerialisedMessages(joined(layouts)), list(enumerate(self._publishers.values()))
        )


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    DisplayTopics(simulator)
