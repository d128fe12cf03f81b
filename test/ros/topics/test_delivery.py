"""What is laid out for some drones is never filled with the state of others, and who gets it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from physics_double import Handle, Physics
from rclpy.logging import get_logger
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import MultiDOFJointState

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.parameters.parameter_groups import PublishRates
from crazyflow_ros.ros.regular_calls import RegularCalls
from crazyflow_ros.ros.topics.drone_states import messages_of_all
from crazyflow_ros.ros.topics.state_topics import ALL, Addressed, Delivery, StateTopics, of_drones


class Publisher:
    """Keeps what is sent, and has a handle as rclpy's publishers."""

    topic_name = "/crazyflow/odometry"

    def __init__(self) -> None:
        self.sent: list[MultiDOFJointState] = []
        self.readers: list[int] = []
        self.handle = Handle(
            lambda payload: self.sent.append(deserialize_message(payload, MultiDOFJointState))
        )

    def get_subscription_count(self) -> int:
        return len(self.readers)

    def ticks(self) -> list[float]:
        """When they were sent: a drone is as far to the east as there were ticks."""
        return [message.transforms[0].translation.x for message in self.sent]


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


class Simulator(Physics):
    """The parts of a node that have the topics of all drones, ten times in 500 ticks."""

    def __init__(self, publisher: Publisher) -> None:
        super().__init__()
        node: Any = self
        self._publisher = publisher
        self.parameters = SimpleNamespace(publish_rates=PublishRates(swarm=10))
        self.regular_calls = RegularCalls(CallbackGuard(get_logger("test")))
        self.listeners = Listeners(node, self.regular_calls, lambda: self.paused)
        message = messages_of_all(self.drones)["odometry"]
        StateTopics(node).add("swarm", message, {"~/odometry": ALL})
        self.listeners.look()

    def for_all_drones(self, add: Callable[[], None]) -> None:
        add()

    def create_publisher(self, *_: Any, **__: Any) -> Publisher:
        return self._publisher

    def get_subscriptions_info_by_topic(self, topic: str) -> list[Any]:
        assert topic == self._publisher.topic_name
        return [SimpleNamespace(endpoint_gid=[reader]) for reader in self._publisher.readers]

    def pass_wall_time(self) -> None:
        for _ in range(10):
            self.regular_calls.make()


def delivery(drones: tuple[str, ...], publisher: Publisher) -> Delivery:
    message = messages_of_all(drones)["odometry"]
    topics = [Addressed({"odometry": publisher}, message.layout([ALL]), message.values)]
    return Delivery(of_drones(drones), topics, {"odometry"})


def test_a_snapshot_of_its_drones_is_sent(publisher: Publisher) -> None:
    physics = Physics()
    physics.use(["cf0", "cf1"])
    physics.tick = 3
    delivery(("cf0", "cf1"), publisher).send(physics.snapshot)
    (message,) = publisher.sent
    assert message.joint_names == ["cf0", "cf1"]
    assert [transform.translation.x for transform in message.transforms] == [3.0, 3.0]


@pytest.mark.parametrize("others", [["cf0"], ["cf0", "cf1", "cf2"], ["cf1", "cf0"], ["a", "b"]])
def test_a_snapshot_of_others_is_not(others: list[str], publisher: Publisher) -> None:
    """As when drones come and go between the request for a snapshot and its arrival."""
    physics = Physics()
    physics.use(others)
    delivery(("cf0", "cf1"), publisher).send(physics.snapshot)
    assert not publisher.sent


def test_who_has_got_nothing_before_time_stands_still_gets_the_state_then(
    publisher: Publisher,
) -> None:
    simulator = Simulator(publisher)
    simulator.feed(range(60))
    publisher.readers = [1]
    simulator.pass_wall_time()
    simulator.feed(range(60, 90))  # none at which a message is due
    assert publisher.ticks() == []
    simulator.paused = True
    simulator.pass_wall_time()
    assert publisher.ticks() == [89]
    simulator.paused = False
    simulator.feed(range(90, 120))
    simulator.paused = True
    simulator.pass_wall_time()
    assert publisher.ticks() == [89, 100]  # it has the last message that was due
    publisher.readers.append(2)
    simulator.pass_wall_time()
    assert publisher.ticks() == [89, 100, 119]
