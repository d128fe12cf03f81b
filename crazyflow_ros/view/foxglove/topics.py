"""Topics between ROS and Foxglove, in both directions, as serialised messages."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import foxglove
from rclpy.qos import DurabilityPolicy
from rclpy.serialization import deserialize_message

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.messages import qos_for, type_of
from crazyflow_ros.view.access import TokenBucket
from crazyflow_ros.view.foxglove.bridge import Bridge

if TYPE_CHECKING:
    from foxglove.websocket import Client, ClientChannel


CDR = "cdr"
"""Encoding of serialised ROS messages."""

HIDDEN = "/_"
"""Part of the names of hidden topics and services, for example those of actions."""

_DEPTH = 100  # of subscriptions and publishers
_MOST_PUBLISHERS = 200
_RATE, _BURST = 500, 500  # messages per s of wall time from one client, and at once
# To each client. The server's queue of a client drops the oldest of 1024 messages, which may be
# latched ones, if a busy processor does not let the server send for a while.
_SENT_RATE, _SENT_BURST = 10_000, 512


class _Topic(NamedTuple):
    """A topic that Foxglove can show."""

    channel: foxglove.Channel
    kind: Any


class Topics:
    """Published topics, each subscribed while a client of Foxglove shows it.

    All methods run in the executor's thread.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge, self._node = bridge, bridge.node
        self._topics: dict[str, _Topic] = {}
        self._followers: defaultdict[str, int] = defaultdict(int)
        self._subscriptions: dict[str, Any] = {}
        self._allowance = TokenBucket(_SENT_RATE, _SENT_BURST)

    def update(self) -> None:
        """Offer new topics, and withdraw those without publishers."""
        published = {
            name: types
            for name, types in self._node.get_topic_names_and_types()
            if HIDDEN not in name and self._node.count_publishers(name)
        }
        for name in self._topics.keys() - published.keys():
            self._unsubscribe(name)
            self._topics.pop(name).channel.close()
        for name in published.keys() - self._topics.keys():
            self._offer(name, published[name])

    def _offer(self, name: str, types: list[str]) -> None:
        if len(types) > 1:  # a subscriber may expect another type
            types = [end.topic_type for end in self._node.get_publishers_info_by_topic(name)]
        schema = self._bridge.schema_of(types[0]) if types else None
        if schema is not None:
            channel = foxglove.Channel(
                name, schema=schema, message_encoding=CDR, context=self._bridge.context
            )
            self._topics[name] = _Topic(channel, type_of(types[0]))

    def follow(self, name: str) -> None:
        """Subscribe to a topic for a client, and send it the latched messages."""
        self._followers[name] += 1
        if name not in self._topics:
            return
        publishers = self._node.get_publishers_info_by_topic(name)
        qos = qos_for([end.qos_profile for end in publishers], _DEPTH)
        is_latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        if is_latched:
            self._unsubscribe(name)  # a new subscription receives the latched messages again
        if name not in self._subscriptions:
            log, bridge = self._topics[name].channel.log, self._bridge

            def receive(payload: bytes) -> None:
                if is_latched or self._allowance.take():
                    log(payload, log_time=bridge.time_ns)

            self._subscriptions[name] = self._node.create_subscription(
                self._topics[name].kind, name, receive, qos, raw=True
            )

    def leave(self, name: str) -> None:
        """Unsubscribe from a topic after its last client."""
        self._followers[name] -= 1
        if self._followers[name] <= 0:
            del self._followers[name]
            self._unsubscribe(name)

    def _unsubscribe(self, name: str) -> None:
        if name in self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop(name))


class ClientTopics:
    """Topics that clients publish: messages are checked, limited in rate, and passed on."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge, self._node = bridge, bridge.node
        self._lock = threading.Lock()  # guards the next two, which the server's threads use
        self._channels: dict[tuple[int, int], tuple[str, Any]] = {}
        self._allowances: dict[int, TokenBucket] = {}
        self._publishers: dict[tuple[str, Any], Any] = {}

    def advertise(self, client: Client, channel: ClientChannel) -> None:
        """Prepare a topic for a client."""
        kind = None
        try:
            if channel.encoding != CDR:
                raise ValueError(f"expected the encoding {CDR}, got {channel.encoding!r}")
            kind = type_of(channel.schema_name)
            with self._lock:
                if len(self._channels) >= _MOST_PUBLISHERS:
                    raise ValueError(
                        f"clients publish {_MOST_PUBLISHERS} topics already, which is the most"
                    )
                self._channels[client.id, channel.id] = channel.topic, kind
        except ValueError as error:
            self._bridge.complain(f"{channel.topic} cannot be published: {error}")
        else:
            self._bridge.run(self._create, channel.topic, kind)

    def _create(self, topic: str, kind: Any) -> None:
        if (topic, kind) in self._publishers:
            return
        try:
            self._publishers[topic, kind] = self._node.create_publisher(kind, topic, _DEPTH)
        except Exception as error:  # rclpy raises its own errors for invalid names
            self._bridge.complain(f"{topic} cannot be published: {error}")

    def unadvertise(self, client: Client, channel_id: int) -> None:
        """Forget a topic of a client."""
        with self._lock:
            left = self._channels.pop((client.id, channel_id), None)
            if all(owner != client.id for owner, _ in self._channels):
                self._allowances.pop(client.id, None)
            in_use = left in self._channels.values()
        if left is not None and not in_use:
            self._bridge.run(self._destroy, left)

    def _destroy(self, key: tuple[str, Any]) -> None:
        with self._lock:
            in_use = key in self._channels.values()
        if not in_use and key in self._publishers:
            self._node.destroy_publisher(self._publishers.pop(key))

    def receive(self, client: Client, channel_id: int, payload: bytes) -> None:
        """Publish a message of a client, unless it is damaged or exceeds the rate limit."""
        with self._lock:
            key = self._channels.get((client.id, channel_id))
            allowance = self._allowances.setdefault(client.id, TokenBucket(_RATE, _BURST))
            if key is None:  # refused before, with the reason
                return
            too_many = not allowance.take()
        topic, kind = key
        if too_many:
            self._bridge.complain(f"{topic}: expected at most {_RATE} messages per second")
            return
        try:
            if len(payload) > limits.MESSAGE_BYTES:
                expected = f"at most {limits.MESSAGE_BYTES} bytes"
                raise ValueError(f"expected {expected}, got {len(payload)}")
            deserialize_message(payload, kind)  # no other node may receive a damaged message
        except Exception as error:  # rclpy has no common base class
            self._bridge.complain(f"{topic}: a message is ignored: {error}")
            return
        self._bridge.run(self._publish, key, payload)

    def _publish(self, key: tuple[str, Any], payload: bytes) -> None:
        if key in self._publishers:
            self._publishers[key].publish(payload)
