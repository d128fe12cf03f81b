"""Who listens: subscriptions are counted again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import rclpy
from physics_helpers import until
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from ros_client import own_domain
from std_msgs.msg import Empty

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.regular_calls import PERIOD, RegularCalls

QOS = QoSProfile(depth=1)


class Simulator(Node):
    """Counts subscriptions of nodes, which may have its own context; time may stand still."""

    def __init__(self, context: rclpy.Context) -> None:
        self.node = self
        super().__init__("simulator", context=context)
        self.regular_calls = RegularCalls(CallbackGuard(self.get_logger()))
        self.paused, self.others, node = False, list[Node](), cast(Any, self)
        self.listeners = Listeners(node, self.regular_calls, lambda: self.paused)
        self.create_timer(PERIOD, self.regular_calls.make)

    def beside(self, name: str) -> Node:
        """Another node, until the test ends."""
        self.others.append(node := Node(name, context=self.context))
        return node

    def create_publisher(self, *arguments: Any, recorded: bool = True, **options: Any) -> Any:
        del recorded
        return super().create_publisher(*arguments, **options)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    context = rclpy.Context()
    context.init(domain_id=own_domain(__name__))
    simulator = Simulator(context)
    yield simulator
    for node in (*simulator.others, simulator):
        node.destroy_node()  # also after a failure, which keeps them
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
    other = simulator.beside("other")
    subscription = other.create_subscription(Empty, "a", lambda message: None, QOS)
    spin(simulator, lambda: looks and looks[-1] == [1, 0])
    assert listeners.heard("a") is publisher and listeners.heard("b") is None
    other.destroy_subscription(subscription)
    spin(simulator, lambda: looks[-1] == [0, 0])
    assert listeners.heard("a") is None


@pytest.mark.parametrize("is_paused_before", [False, True])
@pytest.mark.parametrize("other", ["the same", "another"])
def test_while_time_stands_still_a_subscription_in_place_of_another_is_noticed(
    simulator: Simulator, other: str, is_paused_before: bool
) -> None:
    listeners = simulator.listeners
    for topic in ("a", "b"):
        listeners.create_publisher(Empty, topic, QOS)
    first = simulator.beside("first")
    second = first if other == "the same" else simulator.beside("second")
    subscription = first.create_subscription(Empty, "a", lambda message: None, QOS)
    first.create_subscription(Empty, "b", lambda message: None, QOS)
    simulator.paused = is_paused_before
    spin(simulator, lambda: listeners.count("a") and listeners.count("b"))
    looks: list[set[str]] = []
    listeners.follow(lambda: looks.append(listeners.newly_heard))
    for _ in range(20):
        simulator.regular_calls.make()
    assert not any(looks)  # nobody is new
    publisher = listeners.create_publisher(Empty, "a", QOS)
    for _ in range(2):
        looks.clear()
        first.destroy_subscription(subscription)
        subscription = second.create_subscription(Empty, "a", lambda message: None, QOS)
        first = second
        # Within one period of the listeners, which have not looked meanwhile.
        until(lambda: publisher.get_subscription_count() == 1, "one subscription")
        simulator.paused = True
        spin(simulator, lambda: {"a"} in looks and listeners.count("a") == 1)
        assert not any("b" in new for new in looks)


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
