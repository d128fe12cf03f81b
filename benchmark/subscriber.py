"""Count messages on topics of a simulator, and print the results as JSON.

    python -m benchmark.subscriber 10 FILE hover clock cf0/odom    # for ten seconds

FILE gets the latest messages, for bare_publisher.cpp. The program first commands all drones to hold
their positions (hover), or to fly circles on trajectories of polynomials that change every 0.75 s,
at different times for each drone (fly).
"""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import Transform, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rosgraph_msgs.msg import Clock
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

SETTLE = 2.0  # s of wall time between take-off and measurement
TIMEOUT = 60.0  # s

RADIUS, HEIGHT = 0.3, 1.0  # m
POINTS, PERIOD = 8, 6.0  # per circle; s
JOIN = 3.0  # s for a drone to join its circle
MOST_POINTS = 1000  # of a trajectory
SLOWEST = 0.2  # m/s, lower limit for a flying drone; the nominal speed is 0.31

_CLOCK = "/clock"
_SWEEP_PERIOD = 2e-3  # s
_DEPTH = 100  # of each queue, enough for a sweep at 500 times real time


class _Allocator(ctypes.Structure):
    """`rcutils_allocator_t`."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("allocate", "deallocate", "reallocate")),
        *((name, ctypes.c_void_p) for name in ("zero_allocate", "state")),
    ]


class _Bytes(ctypes.Structure):
    """`rcl_serialized_message_t`."""

    _fields_ = [
        ("buffer", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("allocator", _Allocator),
    ]


class _Inbox:
    """A subscription that takes serialised messages with rcl, like a subscriber in C.

    Taking a message with rclpy costs three times as much.
    """

    def __init__(self) -> None:
        get_allocator = ctypes.CDLL("librcutils.so").rcutils_get_default_allocator
        get_allocator.restype = _Allocator
        self._message = _Bytes(allocator=get_allocator())
        self._reference = ctypes.byref(self._message)
        self._take = ctypes.CDLL("librcl.so").rcl_take_serialized_message
        self._take.argtypes = [ctypes.c_void_p] * 4

    def take(self, subscription: Subscription[Any]) -> bool:
        """Take the next message, and return whether there was one."""
        return self._take(subscription.handle.pointer, self._reference, None, None) == 0

    def latest(self) -> bytes:
        """Return the last message."""
        return ctypes.string_at(self._message.buffer, self._message.length)


class Subscriber:
    """A counter of messages that does not deserialise them, so that it is not the bottleneck.

    It has no callbacks either, which would cost more than everything else: it polls all queues
    periodically.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._inbox = _Inbox()
        self._subscriptions: dict[str, Subscription[Any]] = {}
        self.counts: Counter[str] = Counter()
        self._latest: dict[str, bytes] = {}
        self._publishers: list[Publisher[Any]] = []

    def spin(self, seconds: float) -> None:
        """Count for a time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_SWEEP_PERIOD)
            for topic, subscription in self._subscriptions.items():
                taken = 0
                while self._inbox.take(subscription):
                    taken += 1
                if taken:
                    self.counts[topic] += taken
                    self._latest[topic] = self._inbox.latest()

    def subscribe(self, topics: Sequence[str]) -> None:
        """Find the topics, and subscribe with their publishers' reliability."""
        deadline = time.monotonic() + TIMEOUT
        missing = {f"/{topic}" for topic in topics}
        while missing - self._latest.keys():
            if time.monotonic() > deadline:
                silent = sorted(missing - self._latest.keys())
                raise TimeoutError(f"no message in {TIMEOUT:g} s on {silent[:5]}")
            for topic, (kind, *_) in self._node.get_topic_names_and_types():
                if topic in missing and topic not in self._subscriptions:
                    self._subscribe(topic, kind)
            self.spin(0.1)

    def _subscribe(self, topic: str, kind: str) -> None:
        offers = self._node.get_publishers_info_by_topic(topic)
        if not offers:
            return
        package, _, name = kind.split("/")
        offered = offers[0].qos_profile
        self._subscriptions[topic] = self._node.create_subscription(
            getattr(importlib.import_module(f"{package}.msg"), name),
            topic,
            lambda _: None,
            QoSProfile(
                depth=_DEPTH, reliability=offered.reliability, durability=offered.durability
            ),
            raw=True,
        )

    def record(self, topics: Sequence[str], file: Path) -> None:
        """Write the latest messages: topic, package, type and bytes in hexadecimal, a line each."""
        kinds = dict(self._node.get_topic_names_and_types())
        lines = []
        for topic in (f"/{name}" for name in topics):
            package, _, name = kinds[topic][0].split("/")
            lines.append(f"{topic} {package} {name} {self._latest[topic].hex()}\n")
        file.write_text("".join(lines))

    def hover(self) -> None:
        """Command all drones to hold their positions."""
        self._command("/cmd_vel", TwistStamped, lambda _: TwistStamped())

    def fly(self) -> None:
        """Command all drones to fly circles for 750 s."""
        self._command("/cmd_trajectory", MultiDOFJointTrajectory, circles)

    def _command(self, ending: str, kind: Any, message_of: Callable[[int], Any]) -> None:
        """Publish a message on the topics of drones, which have an ending and numbers."""
        deadline = time.monotonic() + TIMEOUT
        for topic, _ in self._node.get_topic_names_and_types():
            if not topic.endswith(ending) or not any(map(str.isdecimal, topic)):
                continue
            publisher = self._node.create_publisher(kind, topic, 1)
            while not publisher.get_subscription_count():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nobody listens to {topic} after {TIMEOUT:g} s")
                self.spin(0.02)
            publisher.publish(message_of(int("".join(filter(str.isdecimal, topic)))))
            self._publishers.append(publisher)

    def clock(self) -> tuple[float, float]:
        """Return the simulated time of the next message on /clock and its wall time, s."""
        del self._latest[_CLOCK]
        while _CLOCK not in self._latest:
            self.spin(0.001)
        return self.latest_clock(), time.monotonic()

    def latest_clock(self) -> float:
        """Return the simulated time of the latest message on /clock [s]."""
        stamp = deserialize_message(self._latest[_CLOCK], Clock).clock
        return float(stamp.sec + 1e-9 * stamp.nanosec)

    def check_speeds(self) -> None:
        """Check that all drones fly whose odometry is subscribed.

        Raises:
            RuntimeError: One does not.
        """
        for topic, message in self._latest.items():
            if topic.endswith("/odom"):
                vel = deserialize_message(message, Odometry).twist.twist.linear
                if math.hypot(vel.x, vel.y, vel.z) < SLOWEST:
                    raise RuntimeError(f"{topic} has {vel}, not at least {SLOWEST} m/s")

    def measure(self, seconds: float) -> dict[str, float]:
        """Return the simulated and wall time of an interval, and the received messages."""
        simulated, began = self.clock()
        self.counts.clear()
        self.spin(seconds)
        received = self.counts.total()
        later, ended = self.clock()
        return {"simulated": later - simulated, "wall": ended - began, "received": received}


def circles(number: int) -> MultiDOFJointTrajectory:
    """Return circles around the place of a drone, as many as fit into a trajectory."""
    message = MultiDOFJointTrajectory()
    y, x = divmod(number, 10)
    rate = 2 * np.pi / PERIOD
    for k in range(MOST_POINTS):
        angle = 2 * np.pi * k / POINTS
        ahead, left = np.cos(angle), np.sin(angle)
        place, vel, acc = Transform(), Twist(), Twist()
        place.translation.x, place.translation.y = x + RADIUS * ahead, y + RADIUS * left
        place.translation.z = HEIGHT
        vel.linear.x, vel.linear.y = -RADIUS * rate * left, RADIUS * rate * ahead
        acc.linear.x, acc.linear.y = -RADIUS * rate**2 * ahead, -RADIUS * rate**2 * left
        point = MultiDOFJointTrajectoryPoint(
            transforms=[place], velocities=[vel], accelerations=[acc]
        )
        seconds = JOIN + k * PERIOD / POINTS
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(seconds % 1 * 1e9)
        message.points.append(point)
    return message


def main() -> None:
    """Measure for the seconds and topics of the command line."""
    seconds, file, mode, *topics = sys.argv[1:]
    rclpy.init()
    subscriber = Subscriber(rclpy.create_node("subscriber"))
    subscriber.subscribe(topics)
    subscriber.fly() if mode == "fly" else subscriber.hover()
    subscriber.spin(SETTLE)
    print(json.dumps(subscriber.measure(float(seconds))), flush=True)
    if mode == "fly":
        subscriber.check_speeds()
    subscriber.record(topics, Path(file))
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
