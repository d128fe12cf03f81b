"""Which simulators there are in the ROS graph, whether they run or still start."""

from __future__ import annotations

from typing import Any, NamedTuple

from crazyflow_ros.ros.topics.display import DISPLAY

_KIND = "sensor_msgs/msg/MultiDOFJointState"
_STATES = "/odometry"  # of all drones, under the simulator's name, and for displays below it


class SimulatorGraph(NamedTuple):
    """The simulators, at one instant."""

    starts: bool
    """Whether the node with the wanted name is there without states of its drones."""
    others: tuple[str, ...]
    """Full names of all other simulators."""


def read_graph(node: Any, wanted: str) -> SimulatorGraph:
    """Read the graph.

    Args:
        node: A node, used in its own thread.
        wanted: Full name of the simulator that is wanted.
    """
    topics = [
        topic
        for topic, kinds in node.get_topic_names_and_types()
        # A page subscribes to topics of simulators that are not there.
        if topic.endswith(_STATES) and _KIND in kinds and node.count_publishers(topic)
    ]
    running = {topic.removesuffix(_STATES).removesuffix(f"/{DISPLAY}") for topic in topics}
    names = {
        f"{namespace.rstrip('/')}/{name}"
        for name, namespace in node.get_node_names_and_namespaces()
    }
    others = tuple(sorted(running & names - {wanted}))
    return SimulatorGraph(wanted in names and wanted not in running, others)
