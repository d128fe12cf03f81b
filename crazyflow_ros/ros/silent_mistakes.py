"""Warnings about unknown names, and about types and qualities of service that do not match.

A publisher on a misspelt topic, or of a wrong type, is silently connected to nothing. So is the
client of a service that does not exist, which waits forever. rclpy warns about incompatible
qualities of service by an event handler of each topic, which would be too slow (see `GuardedNode`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo

from crazyflow_ros.ros.commands.command_topics import TWIST
from crazyflow_ros.ros.commands.setpoint_messages import VELOCITY
from crazyflow_ros.ros.messages.serialisation import type_name
from crazyflow_ros.ros.near_names import NearNames
from crazyflow_ros.ros.other_nodes import End

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_PATIENCE = 2.0  # s of wall time for the other side to start
_LISTED = 5  # drones in a message

Kinds = Mapping[str, Collection[str]]
"""Accepted types, by the full name of a topic or service."""


class SilentMistakes:
    """Compares what other nodes publish and call with the topics and services of this node."""

    def __init__(self, simulator: Host, clock: Callable[[], float] = time.monotonic) -> None:
        self._host, self._node, self._clock = simulator, simulator.node, clock
        self._drones: tuple[str, ...] = ()
        self._own: tuple[str, ...] = ()  # with topics and services of their own
        self._topics: Kinds = {}
        self._services: Kinds = {}
        self._unheard: dict[End, str] = {}  # why no message passes; empty if they do
        self._near_topics = self._near_services = NearNames({}, (), "")
        self._since: dict[End, float] = {}  # when they were first seen
        self._told: set[End] = set()
        simulator.other_nodes.follow(self._look)

    def _look(self) -> None:
        if (self._host.drones, self._host.interfaces.drones) != (self._drones, self._own):
            self._note_own_names()
        now, seen = self._clock(), dict(self._mistakes())
        self._since = {end: self._since.get(end, now) for end in seen}
        self._told &= seen.keys()
        nodes = self._host.other_nodes
        present = {*nodes.publishers, *nodes.subscriptions}
        self._unheard = {end: text for end, text in self._unheard.items() if end in present}
        for end, text in seen.items():
            if end not in self._told and now - self._since[end] >= _PATIENCE:
                self._told.add(end)
                self._host.log.warning(text)

    def _note_own_names(self) -> None:
        node, self._drones = self._node, self._host.drones
        self._own = self._host.interfaces.drones
        self._topics = {
            each.topic_name: [
                type_name(each.msg_type),
                *([TWIST] if each.topic_name.endswith(f"/{VELOCITY.topic}") else []),
            ]
            for each in node.subscriptions
        }
        self._services = {each.service_name: [type_name(each.srv_type)] for each in node.services}
        names = [node.resolve_topic_name(drone) for drone in self._own]
        own = node.get_fully_qualified_name()
        self._near_topics = NearNames(self._topics, names, own)
        self._near_services = NearNames(self._services, names, own)

    def _mistakes(self) -> Iterator[tuple[End, str]]:
        """Yield the endpoints that are connected to nothing, and the reason."""
        nodes = self._host.other_nodes
        for ends, examine in (
            (nodes.publishers, self._publisher),
            (nodes.subscriptions, partial(self._quality, self._subscription_quality)),
            (nodes.clients, self._client),
        ):
            for end in ends:
                drone = self._host.interfaces.owner(end.name)
                if drone and drone not in self._own:
                    text = self._closed(end, drone)
                else:
                    text = examine(end)
                if text:
                    yield end, text

    def _closed(self, end: End, drone: str) -> str:
        """Return what is wrong with an end below a drone without topics and services."""
        interfaces = self._host.interfaces
        if not interfaces.is_without(drone):
            return ""  # it is about to get them
        return (
            f"{end.node} looks for {end.name}, but {drone} has no topics and services of its own, "
            f"as the parameter interfaces is {interfaces.rule}; add {drone} to the parameter "
            "with_interfaces"
        )

    def _publisher(self, end: End) -> str:
        kinds = self._topics.get(end.name)
        if kinds is None:
            meant = self._near_topics.meant(end.name, end.kind)
            if not meant or self._node.count_subscribers(end.name):
                return ""
            return (
                f"nobody listens on {end.name}, where {end.node} publishes; "
                f"did you mean {meant}?{self._drones_if_unknown(end.name)}"
            )
        if end.kind in kinds:
            return self._quality(self._publisher_quality, end)
        if self._is_received(end):
            return ""
        return (
            f"{end.name}: {end.node} publishes {end.kind}, which nobody receives; "
            f"the topic takes {' or '.join(kinds)}"
        )

    def _quality(self, examine: Callable[[End], str], end: End) -> str:
        """Return what `examine` says of the quality of service of an end, examined once."""
        if end not in self._unheard:
            self._unheard[end] = examine(end)
        return self._unheard[end]

    def _publisher_quality(self, end: End) -> str:
        own = [x.qos_profile for x in self._node.subscriptions if x.topic_name == end.name]
        for info in self._node.get_publishers_info_by_topic(end.name):
            for requested in own if _is_of(info, end) else ():
                if why := _why_unheard(info.qos_profile, requested):
                    return (
                        f"{end.name}: nothing that {end.node} publishes arrives here, because the "
                        f"quality of service does not fit: {why}"
                    )
        return ""

    def _subscription_quality(self, end: End) -> str:
        own = [x.qos_profile for x in self._node.publishers if x.topic_name == end.name]
        for info in self._node.get_subscriptions_info_by_topic(end.name) if own else ():
            for offered in own if _is_of(info, end) else ():
                if why := _why_unheard(offered, info.qos_profile):
                    return (
                        f"{end.name}: {end.node} receives nothing from here, because the "
                        f"quality of service does not fit: {why}"
                    )
        return ""

    def _client(self, end: End) -> str:
        kinds = self._services.get(end.name)
        if kinds is None:
            meant = self._near_services.meant(end.name, end.kind)
            if not meant or self._node.count_services(end.name):
                return ""
            return (
                f"there is no service {end.name}, which {end.node} is to call; "
                f"did you mean {meant}?{self._drones_if_unknown(end.name)}"
            )
        if end.kind in kinds:
            return ""
        return (
            f"{end.name}: {end.node} is to call it as {end.kind}, which nobody answers; "
            f"the service is a {' or '.join(kinds)}"
        )

    def _is_received(self, end: End) -> bool:
        found = self._node.get_subscriptions_info_by_topic(end.name)
        return any(info.topic_type == end.kind for info in found)

    def _drones_if_unknown(self, name: str) -> str:
        """Return a sentence with the drones, unless the name begins with one of them."""
        drones = self._drones
        if any(name.startswith(f"{self._node.resolve_topic_name(drone)}/") for drone in drones):
            return ""
        others = f" and {len(drones) - _LISTED} more" if len(drones) > _LISTED else ""
        return f" The drones are {', '.join(drones[:_LISTED])}{others}."


def _is_of(info: TopicEndpointInfo, end: End) -> bool:
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}" == end.node


def _why_unheard(offered: QoSProfile, requested: QoSProfile) -> str:
    """Return why no message passes between two qualities of service; empty if they fit."""
    for policy, weak, strong in (
        ("reliability", ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE),
        ("durability", DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL),
    ):
        if (getattr(offered, policy), getattr(requested, policy)) == (weak, strong):
            return f"{policy} {weak.name} of the publisher, {strong.name} of the subscription"
    return ""
