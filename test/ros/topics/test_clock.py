"""The topic /clock: two simulators in one ROS domain are told apart from one that was killed."""

from __future__ import annotations

import time

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from ros_client import own_domain
from rosgraph_msgs.msg import Clock

from crazyflow_ros.ros.topics.clock import Rivals

TIMEOUT = 30.0  # s


def seen(node: Node, *names: str) -> bool:
    """Wait until the node sees that the nodes of these names publish the clock."""
    deadline = time.monotonic() + TIMEOUT
    found: list[str] = []
    while time.monotonic() < deadline and found != sorted(names):
        found = sorted(at.node_name for at in node.get_publishers_info_by_topic("/clock"))
        time.sleep(0.05)
    return found == sorted(names)


@pytest.mark.parametrize("other", ["gazebo", "crazyflow"])
def test_another_publisher_of_the_clock_is_reported_once(
    other: str, capfd: pytest.CaptureFixture[str]
) -> None:
    contexts = Context(), Context()
    for context in contexts:
        rclpy.init(context=context, domain_id=own_domain("test_clock"))
    ours, theirs = (
        Node(name, context=context, start_parameter_services=False)
        for name, context in zip(("crazyflow", other), contexts)
    )
    try:
        ours.create_publisher(Clock, "/clock", 10)
        rivals = Rivals(ours)
        assert seen(ours, "crazyflow")
        rivals.look(0.0)
        rivals.look(100.0)
        assert "publishers" not in capfd.readouterr().err
        publisher = theirs.create_publisher(Clock, "/clock", 10)
        assert seen(ours, "crazyflow", other)
        rivals.look(200.0)
        rivals.look(220.0)  # a process that was killed stays in the graph for so long
        assert "publishers" not in capfd.readouterr().err
        for now in (226.0, 227.0):
            rivals.look(now)
        names = f"/crazyflow, /{other}"
        warning = f"/clock has 2 publishers ({names}), so time jumps back and forth"
        assert capfd.readouterr().err.count(warning) == 1
        theirs.destroy_publisher(publisher)
        assert seen(ours, "crazyflow")
        rivals.look(228.0)
        theirs.create_publisher(Clock, "/clock", 10)
        assert seen(ours, "crazyflow", other)
        rivals.look(229.0)
        rivals.look(260.0)
        assert capfd.readouterr().err.count(warning) == 1
    finally:
        for node, context in zip((ours, theirs), contexts):
            node.destroy_node()
            context.try_shutdown()
