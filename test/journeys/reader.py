"""A process that subscribes to all topics, also to those that come, until it is killed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing.connection import Connection

# Imported by the process from which all readers are forked, so that they start at once.
import rclpy
from hostile_messages import type_of
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

_LOOK = 0.2  # s between two looks at the graph
_POLITE = 5  # a reader gives way to the simulator


def read(domain: int, number: int, *, reliable: bool, slow: bool, said: Connection) -> None:
    """Read all topics of a ROS domain.

    Args:
        domain: The domain.
        number: Of this reader.
        reliable: Whether messages are sent again that it missed.
        slow: Whether it takes but a few messages.
        said: Is sent the number of topics, whenever that changes.
    """
    os.nice(_POLITE)
    context = Context()
    rclpy.init(context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    node = Node(f"reader{number}", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    reliability = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
    qos = QoSProfile(depth=10, reliability=reliability)
    read: dict[str, object] = {}
    while True:
        there = dict(node.get_topic_names_and_types())
        for topic in read.keys() - there.keys():
            node.destroy_subscription(read.pop(topic))
        for topic, kinds in there.items():
            if topic not in read:
                with suppress(ImportError, AttributeError):  # of a package that is not installed
                    read[topic] = node.create_subscription(
                        type_of(kinds[0]), topic, lambda _: None, qos, raw=True
                    )
        with suppress(OSError):
            said.send(len(read))
        end = time.monotonic() + _LOOK
        while (left := end - time.monotonic()) > 0:
            if slow:
                time.sleep(left)
            executor.spin_once(max(0.0, left))
