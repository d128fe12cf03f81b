"""What other nodes publish and call, according to the ROS graph.

rclpy does not report changes of the graph, so it is read twice a second, node by node: that takes
10 us for a small node, however many topics this node has. To read all topics of the graph would
take 13 ms with 40 drones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.regular_calls import RegularCalls, Share

_PERIOD = 0.5  # s of wall time
_SHARE = 0.01  # of the executor's time; with many other nodes, they are read less often
_OF_EVERY_NODE = ("/rosout", "/parameter_events")

TWIN = "_twist"
"""Suffix of the name of a simulator's second node."""


class End(NamedTuple):
    """A publisher, a subscription, or the client of a service, of another node."""

    node: str
    """Name of the node with its namespace."""
    name: str
    """Name of the topic or service."""
    kind: str
    """Its type, such as geometry_msgs/msg/Twist."""


class OtherNodes:
    """Reads publishers, subscriptions and clients of other nodes. Used in the executor's thread."""

    def __init__(self, node: GuardedNode, regular_calls: RegularCalls) -> None:
        self._node, self._share = node, Share(_SHARE)
        self._followers: list[Callable[[], None]] = []
        self.publishers: list[End] = []
        self.subscriptions: list[End] = []
        self.clients: list[End] = []
        regular_calls.add(self._look_again, _PERIOD)

    def follow(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each look."""
        self._followers.append(callback)

    def look(self) -> None:
        """Read the graph, and run the callbacks of `follow`.

        If another program has invalid names, rclpy cannot read the graph, and nothing changes.
        """
        node, found = self._node, (list[End](), list[End](), list[End]())
        own = node.get_fully_qualified_name()
        try:
            nodes = node.get_node_names_and_namespaces()
        except (RuntimeError, UnicodeDecodeError) as error:
            whose = "a program in this ROS domain has nodes whose names are none"
            node.log.warning(f"{whose}, so that other nodes are not seen: {error}")
            return
        for name, namespace in nodes:
            full = f"{namespace.rstrip('/')}/{name}"
            if full in (own, f"{own}{TWIN}"):
                continue
            try:
                read = (
                    node.get_publisher_names_and_types_by_node(name, namespace),
                    node.get_subscriber_names_and_types_by_node(name, namespace),
                    node.get_client_names_and_types_by_node(name, namespace),
                )
            except RuntimeError:  # it has just ended, or is no node
                continue
            for ends, names in zip(found, read):
                ends += [
                    End(full, end, kind)
                    for end, kinds in names
                    if end not in _OF_EVERY_NODE
                    for kind in kinds
                ]
        self.publishers, self.subscriptions, self.clients = found
        for callback in self._followers:
            callback()

    def _look_again(self) -> None:
        if self._share.is_due:
            with self._share.spent():
                self.look()
