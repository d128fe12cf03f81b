"""Publishers by topic, and which of them have subscribers: only these are worth computing for.

The middleware reports when a subscription comes or goes. Where it does not, subscriptions are
counted five times a second; with 600 publishers that takes 2 ms of the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from rclpy.event_handler import (
    PublisherEventCallbacks,
    QoSPublisherMatchedInfo,
    UnsupportedEventTypeError,
)
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.regular_calls import RegularCalls

_PERIOD = 0.2  # s of wall time, after which a new subscriber is noticed at the latest


class Listeners:
    """Creates publishers and counts their subscriptions. Used in the executor's thread.

    Args:
        node: The node.
        regular_calls: Its calls at intervals.

    Attributes:
        newly_heard: Topics that got a new subscription between the last two looks.
    """

    def __init__(self, node: GuardedNode, regular_calls: RegularCalls) -> None:
        self._node = node
        self._publishers: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._noted: set[str] = set()
        self.newly_heard: set[str] = set()
        self._followers: list[Callable[[], None]] = []
        # The older executor walks over the events of all publishers whenever it wakes up.
        self._changed, self._reports_changes = True, find_spec("rclpy.experimental") is not None
        regular_calls.add(self._look_again, _PERIOD)

    def create_publisher(
        self, message_type: Any, topic: str, qos: QoSProfile, *, recorded: bool = True
    ) -> Any:
        """Create the publisher of a topic, unless there is one; see the node's method."""
        if topic not in self._publishers:
            publisher = self._new_publisher(message_type, topic, qos, recorded=recorded)
            self._publishers[topic] = publisher
            self._changed = True
        return self._publishers[topic]

    def _new_publisher(
        self, message_type: Any, topic: str, qos: QoSProfile, *, recorded: bool
    ) -> Any:
        create = partial(self._node.create_publisher, recorded=recorded)
        if self._reports_changes:
            events = PublisherEventCallbacks(matched=partial(self._note_change, topic))
            try:
                return create(message_type, topic, qos, event_callbacks=events)
            except UnsupportedEventTypeError:
                self._reports_changes = False
        return create(message_type, topic, qos)

    def _note_change(self, topic: str, change: QoSPublisherMatchedInfo) -> None:
        self._changed = True
        if change.total_count_change:  # not if a subscription has only gone
            self._noted.add(topic)

    def forget(self, prefix: str) -> None:
        """Forget the publishers whose resolved topics begin with `prefix`."""
        kept = self._publishers.items()
        self._publishers = {t: p for t, p in kept if not p.topic_name.startswith(prefix)}

    def remove(self, topic: str) -> None:
        """Destroy the publisher of a topic."""
        self._node.destroy_publisher(self._publishers.pop(topic))
        self._changed = True

    def count(self, topic: str) -> int:
        """Return the number of subscriptions to a topic at the last look; 0 without a publisher."""
        return self._counts.get(topic, 0)

    def heard(self, topic: str) -> Any:
        """Return the publisher of a topic, or None if it had no subscribers at the last look."""
        return self._publishers.get(topic) if self.count(topic) else None

    def follow(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each look."""
        self._followers.append(callback)

    def look(self) -> None:
        """Count all subscriptions, then run the callbacks of `follow`."""
        self._changed = False
        counts = {t: p.get_subscription_count() for t, p in self._publishers.items()}
        # The count also stays the same when another subscription goes at the same time.
        self.newly_heard = self._noted | {t for t, n in counts.items() if n > self.count(t)}
        self._counts, self._noted = counts, set()
        for callback in self._followers:
            callback()

    def _look_again(self) -> None:
        if self._changed or not self._reports_changes:
            self.look()
