"""What a subscriber records of a simulator among others."""

from contextlib import closing
from pathlib import Path

import pytest
from mcap.reader import make_reader
from ros_client import EVERYTHING, LATCHED, Client, own_domain
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from crazyflow_ros.ros.discovery import published
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.recording import topic_recording
from crazyflow_ros.ros.recording.topic_recording import TopicRecording

DOMAIN = own_domain("test_topic_recording")
S = 10**9  # ns


@pytest.mark.parametrize("clocks", [("/clock", "/b/clock"), ("/a/clock", "/clock")])
def test_messages_have_the_time_of_the_simulator_that_is_recorded(
    tmp_path: Path, clocks: tuple[str, str]
) -> None:
    """And not that of another one, whose clock is recorded like any topic that is not hidden."""
    path = tmp_path / "flight.mcap"
    with (
        closing(Client(DOMAIN)) as own,
        closing(Client(DOMAIN)) as other,
        closing(Client(DOMAIN)) as client,
    ):
        own_clock, other_clock = (
            simulator.node.create_publisher(Clock, topic, EVERYTHING)
            for simulator, topic in zip((own, other), clocks)
        )
        hidden = other.node.create_publisher(String, "/a/_action/feedback", EVERYTHING)
        texts = other.node.create_publisher(String, "/text", EVERYTHING)
        name = own.node.get_name()
        client.until(lambda: published(client.node, name, "rosgraph_msgs/msg/Clock"), "a clock")
        recording = TopicRecording(client.node, name, path, {}, 0)
        recording.begin()
        for publisher in (own_clock, other_clock, texts):
            client.until(publisher.get_subscription_count, f"recorder of {publisher.topic_name}")
        for second in range(1, 9):
            for publisher, message in (
                (own_clock, Clock(clock=time_of(second * S))),
                (other_clock, Clock(clock=time_of((400 + second) * S))),
                (texts, String(data="from the other one")),
            ):
                before = recording.status().written
                publisher.publish(message)
                client.until(lambda before=before: recording.status().written > before, "a message")
        assert not hidden.get_subscription_count()
        recording.end()
        recording.close()
    with path.open("rb") as file:
        found = [
            (channel.topic, message.log_time // S)
            for _, channel, message in make_reader(file).iter_messages()
        ]
    assert {topic for topic, _ in found} >= {*clocks, "/text"}
    assert {time for _, time in found} <= set(range(9)), "times of the other simulator"


def test_a_clock_that_jumps_back_begins_a_file_with_the_latched_messages(tmp_path: Path) -> None:
    path = tmp_path / "flight.mcap"
    with closing(Client(DOMAIN)) as own, closing(Client(DOMAIN)) as client:
        clock = own.node.create_publisher(Clock, "/clock", EVERYTHING)
        frames = own.node.create_publisher(String, "/frames", LATCHED)
        frames.publish(String(data="of all"))
        name = own.node.get_name()
        client.until(lambda: published(client.node, name, "rosgraph_msgs/msg/Clock"), "a clock")
        client.until(lambda: client.node.count_publishers("/frames"), "the latched topic")
        recording = TopicRecording(client.node, name, path, {}, 0)
        recording.begin()
        client.until(clock.get_subscription_count, "recorder of the clock")
        client.until(lambda: recording.status().written, "the latched message")
        for second in (5, 6, 2, 3):
            before = recording.status().written
            clock.publish(Clock(clock=time_of(second * S)))
            client.until(lambda before=before: recording.status().written > before, "a message")
        recording.end()
        recording.close()
    found = {}
    for name in ("flight", "flight_1"):
        with path.with_name(f"{name}.mcap").open("rb") as file:
            messages = make_reader(file).iter_messages(log_time_order=False)
            found[name] = [
                (channel.topic, message.log_time // S) for _, channel, message in messages
            ]
    clocks = {name: [one for one in found[name] if one[0] == "/clock"] for name in found}
    assert clocks == {
        "flight": [("/clock", s) for s in (5, 6)],
        "flight_1": [("/clock", s) for s in (2, 3)],
    }
    assert ("/frames", 0) in found["flight"] and ("/frames", 2) in found["flight_1"]


def test_topics_beyond_the_limit_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(topic_recording, "_MOST_TOPICS", 2)
    with closing(Client(DOMAIN)) as own, closing(Client(DOMAIN)) as client:
        for i in range(4):
            own.node.create_publisher(String, f"/text{i}", EVERYTHING)
        name = own.node.get_name()
        client.until(lambda: client.node.count_publishers("/text3"), "the topics")
        recording = TopicRecording(client.node, name, tmp_path / "flight.mcap", {}, 0)
        for _ in range(2):
            recording.begin()
            recording.end()
        recording.close()
    told = [line for line in capfd.readouterr().err.splitlines() if "WARN" in line]
    assert len(told) == 1 and told[0].endswith("topics are not recorded: the limit is 2")
