"""The node removes what belongs to a drone, whatever it is called outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rclpy
from rclpy.qos import QoSProfile
from ros_client import own_domain
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from crazyflow_ros.ros.guarded_node import GuardedNode
from crazyflow_ros.ros.listeners import Listeners

RULES = ["cf1/x:=/x", "/swarm/cf1/y:=z", "cf2/x:=cf1/away", "clock:=/swarm/cf1/clock"]
OWN = ("cf1/x", "cf1/y", "cf1/z")
OTHERS = ("cf2/x", "cf10/x", "clock")


@pytest.fixture
def node() -> Iterator[GuardedNode]:
    rules = [part for rule in ["__ns:=/swarm", *RULES] for part in ("-r", rule)]
    rclpy.init(args=["--ros-args", *rules], domain_id=own_domain(__name__))
    yield GuardedNode("node")
    rclpy.try_shutdown()


def test_what_is_remapped_goes_with_its_drone(node: GuardedNode) -> None:
    listeners = Listeners(node, node.regular_calls, lambda: False)

    def names() -> list[list[str]]:
        return [
            sorted(each.topic_name for each in node.publishers),
            sorted(each.topic_name for each in node.subscriptions),
            sorted(each.service_name for each in node.services),
        ]

    def publish(*which: str) -> None:
        for name in which:
            listeners.create_publisher(Empty, name, QoSProfile(depth=1))

    def answering() -> set[object]:
        return {each.callback for each in node.services}

    def create(*which: str) -> None:
        publish(*which)
        for name in which:
            node.create_subscription(Empty, name, print, 1)
            node.create_service(Trigger, name, print)

    before = names()
    create(*OTHERS)
    others, answer = names(), answering()
    create(*OWN)
    everything = names()
    for now, then in zip(everything, before, strict=True):
        added = ["/swarm/cf1/away", "/swarm/cf1/clock", "/swarm/cf10/x", "/swarm/cf1/z"]
        assert now == sorted([*then, *added, "/x", "/swarm/z"])
    for _ in range(2):
        listeners.forget("/swarm/cf1/")
        node.remove_entities("/swarm/cf1/")
        publish(*OTHERS)  # nothing to do
        assert names()[:2] == others[:2] and answer < answering()
        create(*OWN)
        assert names() == everything
