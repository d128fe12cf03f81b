"""Serialised messages, read by rclpy and by rosbags, which has a serialiser of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import Any

from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from ros_client import Client
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from crazyflow_ros.client import SimulationError
from crazyflow_ros.ros.messages.message_definitions import definition, type_of
from crazyflow_ros.ros.messages.serialisation import serialised, type_name

_FROM_RCL = re.compile("/rosout|/parameter_events|.*/_action/.*")
"""Topics of which rcl itself serialises the messages."""
_types = get_typestore(Stores.EMPTY)


def canonical(payload: bytes, kind: Any) -> bytes:
    """A serialised message as rosbags writes what it reads in it: with zeros between the fields.

    rosbags refuses messages that are too short or too long.
    """
    name = type_name(kind)
    if name not in _types.fielddefs:
        found = get_types_from_msg(definition(kind), name)
        _types.register(
            {new: fields for new, fields in found.items() if new not in _types.fielddefs}
        )
    return bytes(_types.serialize_cdr(_types.deserialize_cdr(payload, name), name))


def check(payload: bytes, kind: Any) -> None:
    """A message is, but for what is between its fields, as rosbags and rclpy serialise it."""
    expected = canonical(payload, kind)
    assert len(payload) == len(expected)
    again = serialised(deserialize_message(payload, kind))
    assert len(payload) == len(again)
    assert canonical(again, kind) == expected


class Wire:
    """All that a node publishes from now on, as bytes.

    Args:
        client: It subscribes.
        node: Name of the node.
    """

    def __init__(self, client: Client, node: str) -> None:
        self._client, ours = client, client.node
        client.until(lambda: node in ours.get_node_names(), f"{node} in the graph")
        listed = ours.get_publisher_names_and_types_by_node(node, "/")
        self.kinds = {t: type_of(kinds[0]) for t, kinds in listed if not _FROM_RCL.fullmatch(t)}
        self._heard: dict[str, list[bytes]] = {topic: [] for topic in self.kinds}
        self._subscriptions = []
        for topic, kind in self.kinds.items():
            offered = ours.get_publishers_info_by_topic(topic)[0].qos_profile
            qos = QoSProfile(
                depth=1000, durability=offered.durability, reliability=offered.reliability
            )
            hear = self._heard[topic].append
            self._subscriptions.append(ours.create_subscription(kind, topic, hear, qos, raw=True))

    def check(self, act: Callable[[], object], quiet: Set[str] = frozenset()) -> None:
        """See that each topic carries what others can read.

        Args:
            act: Lets the node publish; called until all topics but the quiet ones have messages.
            quiet: Topics on which there need be none.
        """
        assert quiet <= self.kinds.keys()
        try:
            self._client.until(lambda: act() or not self._silent() - quiet, "messages")
        except SimulationError as error:
            raise AssertionError(f"silent: {sorted(self._silent() - quiet)}") from error
        for subscription in self._subscriptions:
            self._client.node.destroy_subscription(subscription)
        for topic, payloads in self._heard.items():
            for payload in payloads:
                kind = self.kinds[topic]
                try:
                    # Between processes, messages in one packet are filled up to words.
                    size = len(canonical(payload, kind))
                    assert len(payload) in (size, -(-size // 4) * 4)
                    check(payload[:size], kind)
                except Exception as error:
                    raise AssertionError(f"{topic}: {error!r}") from error

    def _silent(self) -> set[str]:
        return {topic for topic, payloads in self._heard.items() if not payloads}
