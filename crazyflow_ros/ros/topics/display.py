"""~/display/odometry and ~/display/joint_states: the swarm's topics for programs that draw.

They have at most 30 messages in a second of wall time. At twenty times real time, ~/odometry has
two thousand, which slow the simulation down, and of which nobody sees more than a few.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rclpy.qos import QoSProfile, ReliabilityPolicy

from crazyflow_ros.ros.topics.state_topics import ALL, Addressed, Delivery
from crazyflow_ros.ros.topics.states import messages_of_all
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

DISPLAY = "display"
"""Namespace of the topics, below that of the node."""

_RATE = 30  # Hz of wall time
_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_REPEAT = 0.5  # s of wall time after which the same state is sent again, for new subscribers


class DisplayTopics:
    """Publishes the latest state, in the executor's thread.

    It computes nothing without subscribers. While the state stays the same, it is sent twice a
    second. Recordings do not contain these messages, which depend on wall time.
    """

    def __init__(self, simulator: Host) -> None:
        self._physics, self._listeners = simulator.physics, simulator.listeners
        create = self._listeners.create_publisher
        self._publishers = {
            f"~/{DISPLAY}/{name}": create(message.kind, f"~/{DISPLAY}/{name}", _QOS, recorded=False)
            for name, message in messages_of_all(()).items()
        }
        self._arrange(())
        self._shown: Snapshot | None = None
        self._sent = 0.0
        self._timer = simulator.create_timer(1 / _RATE, self._send)
        self._listeners.follow(self._rest_unheard)

    def _rest_unheard(self) -> None:
        """Let the timer wake the executor only for subscribers."""
        if not any(map(self._listeners.count, self._publishers)):
            self._timer.cancel()
        elif self._timer.is_canceled():
            self._timer.reset()

    def _send(self) -> None:
        now, snapshot = time.monotonic(), self._physics.snapshot
        if snapshot is self._shown and now < self._sent + _REPEAT:
            return
        if snapshot.names != self._drones:
            self._arrange(snapshot.names)
        self._shown, self._sent = snapshot, now
        self._delivery.send(snapshot)

    def _arrange(self, drones: Sequence[str]) -> None:
        """Lay out the messages for these drones."""
        self._drones = drones
        topics = [
            Addressed({topic: publisher}, message.layout([ALL]), message.values)
            for (topic, publisher), message in zip(
                self._publishers.items(), messages_of_all(drones).values()
            )
        ]
        self._delivery = Delivery(drones, topics, set(self._publishers))
