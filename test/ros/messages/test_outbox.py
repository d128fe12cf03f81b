"""Serialised messages that are sent many at a time."""

import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

from crazyflow_ros.ros.messages import outbox
from crazyflow_ros.ros.messages.cdr import layout
from crazyflow_ros.ros.messages.outbox import Outbox, SerialisedMessages
from crazyflow_ros.ros.messages.tapped_publisher import TappedPublisher

TOPICS = ("outbox/a", "outbox/b", "outbox/c")
QOS = QoSProfile(depth=100)
TIMES_NS = [1_000_000_007, 2_000_000_008, 3_000_000_009]
SECONDS = [1, 2, 3]


class Listener:
    """A node that sends, and one that notes the seconds in what arrives."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        self.context.init()
        self.node = Node("sender", context=self.context)
        other = Node("listener", context=self.context)
        self.own = [self.node.create_publisher(Header, topic, QOS) for topic in TOPICS]
        self.publishers: list[Any] = list(self.own)
        self.heard: dict[str, list[tuple[int, str]]] = {topic: [] for topic in TOPICS}
        for topic, heard in self.heard.items():
            other.create_subscription(
                Header, topic, lambda m, h=heard: h.append((m.stamp.sec, m.frame_id)), QOS
            )
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(other)
        self.spin_until(lambda: all(p.get_subscription_count() for p in self.own))

    def spin_until(self, is_done) -> None:
        for _ in range(500):
            if is_done():
                return
            self._executor.spin_once(timeout_sec=0.02)
        raise TimeoutError(f"after 10 s there is only {self.heard}")

    def expect(self, *seconds: list[int]) -> None:
        """Wait for as many messages, and see that they are these, each on its topic."""
        n_expected = sum(map(len, seconds))
        self.spin_until(lambda: sum(map(len, self.heard.values())) >= n_expected)
        expected = {t: [(s, t) for s in row] for t, row in zip(TOPICS, seconds)}
        assert self.heard == expected


@pytest.fixture(params=["in C", "in Python", "recorded"])
def listener(request, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    if request.param == "in Python":
        monkeypatch.setattr(outbox, "is_available", lambda: False)
    elif request.param == "in C" and not outbox.is_available():
        pytest.skip("outbox.c is not compiled")
    listener = Listener()
    if request.param == "recorded":
        listener.publishers = [TappedPublisher(p, lambda _: None) for p in listener.own]
    yield listener
    listener.context.try_shutdown()


@pytest.fixture
def messages() -> SerialisedMessages:
    prototypes = [Header(frame_id=topic) for topic in TOPICS]
    return SerialisedMessages(layout(prototypes, [], ["stamp"]))


@pytest.fixture
def moments(messages: SerialisedMessages) -> np.ndarray:
    return messages.series(np.array(TIMES_NS)[:, None], [])


def test_it_is_compiled_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    assert outbox.is_available()


def test_all_messages_arrive_in_order(listener, messages, moments) -> None:
    box = Outbox(list(zip(listener.publishers, messages.places)))
    box.send(moments)
    listener.expect(SECONDS, SECONDS, SECONDS)


def test_only_what_is_wanted_is_sent(listener, messages, moments) -> None:
    box = Outbox(list(zip(listener.publishers, messages.places)))
    box.send(moments, np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]], bool))
    listener.expect([1, 3], [3], [1, 2])


def test_publishers_that_are_gone_get_nothing(listener, messages, moments) -> None:
    listener.node.destroy_publisher(listener.own[1])
    box = Outbox(list(zip(listener.publishers, messages.places)))
    box.send(moments)
    listener.expect(SECONDS, [], SECONDS)


def test_single_messages_of_publishers_that_are_gone_are_refused(listener) -> None:
    listener.publishers[0].publish(Header(frame_id=TOPICS[0]))
    listener.expect([0], [], [])
    listener.node.destroy_publisher(listener.own[0])
    with pytest.raises(InvalidHandle):  # as senders expect when a drone goes
        listener.publishers[0].publish(Header())


def test_publishers_stay_as_long_as_the_outbox(listener, messages, moments) -> None:
    box = Outbox(list(zip(listener.publishers, messages.places)))
    listener.node.destroy_publisher(listener.own[1])
    box.send(moments[:1])
    listener.expect([1], [1], [1])
    assert listener.node.count_publishers(TOPICS[1]) == 1
    del box
    listener.spin_until(lambda: listener.node.count_publishers(TOPICS[1]) == 0)


def test_what_cannot_be_sent_is_told(listener, messages, moments) -> None:
    box = Outbox(list(zip(listener.publishers, messages.places)))
    listener.context.shutdown()
    with pytest.raises(RuntimeError, match=r"9 messages could not be sent: .*context is invalid"):
        box.send(moments)
