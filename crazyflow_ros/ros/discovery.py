"""Simulators in the ROS graph."""

from __future__ import annotations

from rclpy.node import Node, NodeNameNonExistentError

_OWN_SERVICE = "/get_simulator_features"
"""End of the names of the services by which simulators are found."""


def simulators(node: Node) -> list[str]:
    """Return the full names of all simulators of a node's ROS domain."""
    services = [name for name, _ in node.get_service_names_and_types()]
    return sorted(n.removesuffix(_OWN_SERVICE) for n in services if n.endswith(_OWN_SERVICE))


def published(node: Node, simulator: str, kind: str) -> list[str]:
    """Return the topics of a type that a simulator in the namespace of a node publishes.

    Those of the clock and of the transforms have other names where several simulators run.

    Args:
        node: The node.
        simulator: Name of the simulator's node.
        kind: The type, for example rosgraph_msgs/msg/Clock.
    """
    try:
        found = node.get_publisher_names_and_types_by_node(simulator, node.get_namespace())
    except NodeNameNonExistentError:  # services may be discovered before the node
        return []
    return [topic for topic, types in found if kind in types]
