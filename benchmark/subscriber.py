"""Subscribes everything that a simulator publishes, counts, and prints what it saw as JSON.

    python -m benchmark.subscriber 10    # for ten seconds

Before, it sends each drone up by a metre, so that all of them fly.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections import Counter

import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rosgraph_msgs.msg import Clock

SIMULATOR = "crazyflow"
NOT_OURS = ("/rosout", "/parameter_events")  # every node has them
SETTLE = 2.0  # s of wall time between take-off and measurement
TIMEOUT = 60.0  # s

_SWEEP_PERIOD = 2e-3  # s
_DEPTH = 100  # of each queue, enough for a sweep at 500 times real time


class Subscriber:
    """Counts messages without deserialising them, so as not to be the bottleneck.

    Nor is it called for each of them, which costs more than the rest: messages wait in their queues
    until it looks through all queues.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._subscriptions: dict[str, Subscription] = {}
        self.counts: Counter[str] = Counter()
        self._latest: dict[str, bytes] = {}
        self._publishers: list[Publisher] = []

    def spin(self, seconds: float) -> None:
        """Count for some time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_SWEEP_PERIOD)
            for topic, subscription in self._subscriptions.items():
                while taken := subscription.handle.take_message(subscription.msg_type, True):
                    self.counts[topic] += 1
                    self._latest[topic] = taken[0]

    def subscribe(self) -> None:
        """Find the simulator's topics, subscribe them as reliably as they are published."""
        deadline = time.monotonic() + TIMEOUT
        topics: dict[str, str] = {}
        before: dict[str, str] | None = None
        while not topics or topics != before:  # until discovery brings no more
            if time.monotonic() > deadline:
                raise TimeoutError(f"no node {SIMULATOR} with its topics in {TIMEOUT:g} s")
            self.spin(1.0)
            before, topics = topics, self._topics()
        for topic, kind in topics.items():
            package, _, name = kind.split("/")
            offered = self._node.get_publishers_info_by_topic(topic)[0].qos_profile
            self._subscriptions[topic] = self._node.create_subscription(
                getattr(importlib.import_module(f"{package}.msg"), name),
                topic,
                lambda _: None,
                QoSProfile(
                    depth=_DEPTH, reliability=offered.reliability, durability=offered.durability
                ),
                raw=True,
            )
        while silent := [topic for topic in topics if topic not in self._latest]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no message in {TIMEOUT:g} s on {silent[:5]}")
            self.spin(0.1)

    def take_off(self) -> None:
        """Send all drones to a height of 1 m, in the simulated air."""
        for topic in [topic for topic in self._latest if topic.endswith("/pose")]:
            command = deserialize_message(self._latest[topic], PoseStamped)
            command.header.stamp = Time()
            command.pose.position.z = 1.0
            publisher = self._node.create_publisher(
                PoseStamped, f"{topic.removesuffix('pose')}cmd_pose", 1
            )
            while not publisher.get_subscription_count():
                self.spin(0.02)
            publisher.publish(command)
            self._publishers.append(publisher)

    def clock(self) -> tuple[float, float]:
        """Simulated time of the next message on /clock, and wall time when it came, in s."""
        del self._latest["/clock"]
        while "/clock" not in self._latest:
            self.spin(0.001)
        now, stamp = time.monotonic(), deserialize_message(self._latest["/clock"], Clock).clock
        return stamp.sec + 1e-9 * stamp.nanosec, now

    def _topics(self) -> dict[str, str]:
        if (SIMULATOR, "/") not in self._node.get_node_names_and_namespaces():
            return {}
        published = self._node.get_publisher_names_and_types_by_node(SIMULATOR, "/")
        return {topic: kinds[0] for topic, kinds in published if topic not in NOT_OURS}


def main() -> None:
    """Measure for the number of seconds given on the command line."""
    rclpy.init()
    subscriber = Subscriber(rclpy.create_node("subscriber"))
    subscriber.subscribe()
    subscriber.take_off()
    subscriber.spin(SETTLE)
    simulated, began = subscriber.clock()
    subscriber.counts.clear()
    subscriber.spin(float(sys.argv[1]))
    received = dict(subscriber.counts)
    later, ended = subscriber.clock()
    result = {"simulated": later - simulated, "wall": ended - began, "received": received}
    print(json.dumps(result), flush=True)
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
