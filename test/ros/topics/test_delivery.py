"""What is laid out for some drones is never filled with the state of others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
from physics_double import Physics
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import MultiDOFJointState

from crazyflow_ros.ros.topics.state_topics import ALL, Addressed, Delivery
from crazyflow_ros.ros.topics.states import messages_of_all


class Publisher:
    """Keeps what is sent, and has a handle as rclpy's publishers."""

    def __init__(self) -> None:
        self.sent: list[MultiDOFJointState] = []

    @property
    def handle(self) -> Any:
        publisher = self

        class Handle(AbstractContextManager[None]):
            def __exit__(self, *_: object) -> None:
                """Nothing is held."""

            def publish_raw(self, payload: bytes) -> None:
                publisher.sent.append(deserialize_message(payload, MultiDOFJointState))

        return Handle()


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


def delivery(drones: tuple[str, ...], publisher: Publisher) -> Delivery:
    message = messages_of_all(drones)["odometry"]
    topics = [Addressed({"odometry": publisher}, message.layout([ALL]), message.values)]
    return Delivery(drones, topics, {"odometry"})


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
