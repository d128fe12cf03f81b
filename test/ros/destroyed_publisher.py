"""Destroys a publisher while the event of a match is queued in an executor of rclpy.

    python destroyed_publisher.py EventsExecutor | SingleThreadedExecutor

Needs nothing but rclpy and std_msgs. With the EventsExecutor of rclpy 9.1.2 (Kilted) it ends with a
segmentation fault (https://github.com/ros2/rclpy/issues/1644). When the executor handles the
removal, it forgets the callback of the event, but the queue still holds a copy of it, with the last
reference to the wait set's `ScopedWith`. `EventsQueue::RunUntil` drops that copy without Python's
lock, and `ScopedWith::~ScopedWith` then calls `__exit__`.
"""

import sys
import time

import rclpy
import rclpy.executors
import rclpy.experimental
from rclpy.event_handler import PublisherEventCallbacks
from std_msgs.msg import Empty

TOPIC = "destroyed_publisher"

rclpy.init()
node, other = rclpy.create_node("node"), rclpy.create_node("other")
kind = sys.argv[1]
executor = (getattr(rclpy.executors, kind, None) or getattr(rclpy.experimental, kind))()
executor.add_node(node)
for _ in range(10):
    events = PublisherEventCallbacks(matched=lambda _: None)
    publisher = node.create_publisher(Empty, TOPIC, 10, event_callbacks=events)
    for _ in range(5):  # the executor takes note of it
        executor.spin_once(0.0)
    node.destroy_publisher(publisher)  # the executor keeps it until it takes note of this
    subscription = other.create_subscription(Empty, TOPIC, lambda _: None, 10)
    end = time.monotonic() + 0.2
    while not subscription.get_publisher_count() and time.monotonic() < end:
        time.sleep(0.001)
    for _ in range(5):
        executor.spin_once(0.0)
    other.destroy_subscription(subscription)
print("alive")
