"""Publishers by topic, and which of them have subscribers: nothing is computed for the others.

Subscriptions are counted five times a second; with 600 publishers that takes 2 ms of the
interpreter's lock. The middleware would report changes by an event handler of each publisher, but
an executor checks all handlers whenever it wakes up, which takes longer.

The count does not change if one subscription replaces another. That matters only while time stands
still, when nothing else is sent. Then the subscriptions themselves are compared, which takes 40 us
for each topic that has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile

from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.regular_calls import RegularCalls, Share

_PERIOD = 0.2  # s of wall time, after which a new subscriber is noticed at the latest
_SHARE = 0.05  # of the executor's time; with many topics, subscriptions are compared less often


class Listeners:
    """Creates publishers and counts their subscriptions. Used in the executor's thread.

    Attributes:
        newly_heard: Topics that got a new subscription between the last two looks.
    """

    def __init__(
        self, node: GuardedNode, regular_calls: RegularCalls, is_paused: Callable[[], bool]
    ) -> None:
        self._node = node
        self._publishers: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._readers: dict[str, set[bytes]] = {}  # the subscriptions of topics, when last read
        self._noted: set[str] = set()  # topics that have another subscription
        self._share = Share(_SHARE)
        self.newly_heard: set[str] = set()
        self._followers: list[Callable[[], None]] = []
        self._is_paused, self._was_paused = is_paused, False
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
        """Call `callback` after each `look`, also when time has begun to stand still."""
        self._followers.append(callback)

    def look(self) -> None:
        """Count all subscriptions, then run the callbacks of `follow`."""
        counts = self._present_counts()
        changed = {t for t, n in counts.items() if n != self.count(t)}
        grown = {t for t in changed if counts[t] > self.count(t)}
        self.newly_heard = grown | self._noted | self._new_readers(changed)
        self._counts, self._noted = counts, set()
        for callback in self._followers:
            callback()

    def _look_again(self) -> None:
        was_paused, is_paused = self._was_paused, self._is_paused()
        self._was_paused = is_paused
        if is_paused and self._share.is_due:
            with self._share.spent():
                self._noted |= self._new_readers(t for t in self._publishers if self.count(t))
        stopped = is_paused and not was_paused
        if stopped or self._noted or self._present_counts() != self._counts:
            self.look()

    def _present_counts(self) -> dict[str, int]:
        return {t: p.get_subscription_count() for t, p in self._publishers.items()}

    def _new_readers(self, topics: Iterable[str]) -> set[str]:
        """Read the subscriptions of topics, and return those that have others than before."""
        new = set()
        for topic in topics:
            name = self._publishers[topic].topic_name
            try:
                infos = self._node.get_subscriptions_info_by_topic(name)
            except (RuntimeError, UnicodeDecodeError):  # `OtherNodes` says why
                continue
            before = self._readers.get(topic, set())
            self._readers[topic] = {bytes(info.endpoint_gid) for info in infos}
            if not self._readers[topic] <= before:
                new.add(topic)
        return new
