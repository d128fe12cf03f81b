"""Publishers by topic, and which of them have subscribers: only these are worth computing for.

Subscriptions are counted five times a second; with 600 publishers that takes 2 ms of the
interpreter's lock. The middleware would report changes, by an event handler of each publisher: an
executor walks over all of them whenever it wakes up, which takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile

from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.other_nodes import End, OtherNodes
from crazyflow_ros.ros.regular_calls import RegularCalls

_PERIOD = 0.2  # s of wall time, after which a new subscriber is noticed at the latest


class Listeners:
    """Creates publishers and counts their subscriptions. Used in the executor's thread.

    Args:
        node: The node.
        regular_calls: Its calls at intervals.
        other_nodes: Knows who subscribes.

    Attributes:
        newly_heard: Topics that got a new subscription between the last two looks.
    """

    def __init__(
        self, node: GuardedNode, regular_calls: RegularCalls, other_nodes: OtherNodes
    ) -> None:
        self._node = node
        self._publishers: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._ends: set[End] = set()
        self._noted: set[str] = set()  # full names of topics that have a new subscriber
        self.newly_heard: set[str] = set()
        self._followers: list[Callable[[], None]] = []
        self._other_nodes = other_nodes
        other_nodes.follow(self._note_ends)
        regular_calls.add(self._look_again, _PERIOD)

    def create_publisher(
        self, message_type: Any, topic: str, qos: QoSProfile, *, recorded: bool = True
    ) -> Any:
        """Create the publisher of a topic, unless there is one; see the node's method."""
        if topic not in self._publishers:
            self._publishers[topic] = self._node.create_publisher(
                message_type, topic, qos, recorded=recorded
            )
        return self._publishers[topic]

    def forget(self, prefix: str) -> None:
        """Forget publishers whose full names, without remapping, begin with `prefix`."""
        full = partial(self._node.resolve_topic_name, only_expand=True)
        kept = self._publishers.items()
        self._publishers = {t: p for t, p in kept if not full(t).startswith(prefix)}

    def remove(self, topic: str) -> None:
        """Destroy the publisher of a topic."""
        self._node.destroy_publisher(self._publishers.pop(topic))

    def count(self, topic: str) -> int:
        """Return the number of subscriptions to a topic at the last look; 0 without a publisher."""
        return self._counts.get(topic, 0)

    def heard(self, topic: str) -> Any:
        """Return the publisher of a topic, or None if it had no subscribers at the last look."""
        return self._publishers.get(topic) if self.count(topic) else None

    def follow(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each `look`."""
        self._followers.append(callback)

    def look(self) -> None:
        """Count all subscriptions, then run the callbacks of `follow`."""
        counts = self._present_counts()
        self.newly_heard = {t for t, n in counts.items() if n > self.count(t)}
        if self._noted:  # the count stays the same when another subscription goes at the same time
            publishers = self._publishers.items()
            self.newly_heard |= {t for t, p in publishers if p.topic_name in self._noted}
        self._counts, self._noted = counts, set()
        for callback in self._followers:
            callback()

    def _look_again(self) -> None:
        if self._noted or self._present_counts() != self._counts:
            self.look()

    def _present_counts(self) -> dict[str, int]:
        return {t: p.get_subscription_count() for t, p in self._publishers.items()}

    def _note_ends(self) -> None:
        ends = set(self._other_nodes.subscriptions)
        self._noted |= {end.name for end in ends - self._ends}
        self._ends = ends
