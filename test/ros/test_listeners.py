"""Who listens: subscriptions are counted again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Empty

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.other_nodes import OtherNodes
from crazyflow_ros.ros.regular_calls import PERIOD, RegularCalls

QOS = QoSProfile(depth=1)


class Simulator(Node):
    """Counts subscriptions, and knows other nodes, which may have its own context."""

    def __init__(self, context: rclpy.Context) -> None:
        self.node = self
        super().__init__("simulator", context=context)
        self.regular_calls = RegularCalls(CallbackGuard(self.get_logger()))
        others = self.other_nodes = OtherNodes(self, self.regular_calls)
        self.listeners = Listeners(self, self.regular_calls, others)  # type: ignore[arg-type]
        self.create_timer(PERIOD, self.regular_calls.make)

    def create_publisher(self, *arguments: Any, recorded: bool = True, **options: Any) -> Any:
        del recorded
        return super().create_publisher(*arguments, **options)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    context = rclpy.Context()
    context.init()
    yield Simulator(context)
    context.try_shutdown()


def spin(node: Node, is_done: Callable[[], object]) -> None:
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    for _ in range(500):
        if is_done():
            return
        executor.spin_once(timeout_sec=0.02)
    raise TimeoutError


def test_it_is_known_who_listens(simulator: Simulator) -> None:
    listeners = simulator.listeners
    looks = []
    listeners.follow(lambda: looks.append([listeners.count("a"), listeners.count("b")]))
    publisher = listeners.create_publisher(Empty, "a", QOS)
    listeners.create_publisher(Empty, "b", QOS)
    assert listeners.create_publisher(Empty, "a", QOS) is publisher
    assert listeners.heard("a") is None and listeners.heard("c") is None
    other = Node("other", context=simulator.context)
    subscription = other.create_subscription(Empty, "a", lambda message: None, QOS)
    spin(simulator, lambda: looks and looks[-1] == [1, 0])
    assert listeners.heard("a") is publisher and listeners.heard("b") is None
    other.destroy_subscription(subscription)
    spin(simulator, lambda: looks[-1] == [0, 0])
    assert listeners.heard("a") is None


def test_a_new_subscription_is_noticed_when_another_goes(simulator: Simulator) -> None:
    listeners = simulator.listeners
    listeners.create_publisher(Empty, "a", QOS)
    other = Node("other", context=simulator.context)
    first = other.create_subscription(Empty, "a", lambda message: None, QOS)
    spin(simulator, lambda: listeners.count("a"))
    simulator.other_nodes.look()
    listeners.look()
    newly_heard: list[str] = []
    listeners.follow(lambda: newly_heard.extend(listeners.newly_heard))
    another = Node("another", context=simulator.context)
    another.create_subscription(Empty, "a", lambda message: None, QOS)
    other.destroy_subscription(first)
    spin(simulator, lambda: "a" in newly_heard)
    assert listeners.count("a") == 1


def test_who_is_forgotten_is_not_heard(simulator: Simulator) -> None:
    listeners = simulator.listeners
    for topic in ("cf1/a", "cf10/a"):
        listeners.create_publisher(Empty, topic, QOS)
        simulator.create_subscription(Empty, topic, lambda message: None, QOS)
    spin(simulator, lambda: listeners.count("cf1/a") and listeners.count("cf10/a"))
    listeners.forget("/cf1/")
    assert listeners.heard("cf1/a") is None and listeners.heard("cf10/a") is not None
    listeners.look()
    assert listeners.count("cf1/a") == 0
