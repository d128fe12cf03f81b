"""Which messages Foxglove's server passes on: those that the SDK writes into a file tell."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcap.reader import make_reader
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from crazyflow_ros.view.access import TokenBucket

foxglove = pytest.importorskip("foxglove", reason="foxglove-sdk is not installed")

from crazyflow_ros.view.foxglove import topics as topics_module  # noqa: E402

KIND = "std_msgs/msg/String"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Node:
    """The parts of a node that topics need."""

    def __init__(self, **offered: QoSProfile) -> None:
        self._offered = offered
        self.receive: dict[str, Any] = {}

    def get_topic_names_and_types(self) -> list[tuple[str, list[str]]]:
        return [(name, [KIND]) for name in self._offered]

    def count_publishers(self, name: str) -> int:
        return 1

    def get_publishers_info_by_topic(self, name: str) -> list[Any]:
        return [SimpleNamespace(topic_type=KIND, qos_profile=self._offered[name])]

    def create_subscription(
        self, kind: Any, name: str, callback: Any, qos: Any, *, raw: bool
    ) -> Any:
        assert kind is String and raw
        self.receive[name] = callback

    def destroy_subscription(self, subscription: Any) -> None:
        pass


def test_a_burst_pushes_no_latched_message_out_of_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = SimpleNamespace(time=0.0)
    limit = partial(TokenBucket, clock=lambda: wall.time)
    monkeypatch.setattr(topics_module, "TokenBucket", limit)
    context = foxglove.Context()
    node = Node(flood=QoSProfile(depth=1), scene=LATCHED)
    schema = foxglove.Schema(name=KIND, encoding="ros2msg", data=b"string data")
    bridge: Any = SimpleNamespace(
        node=node, context=context, time_ns=1, schema_of=lambda name: schema
    )
    topics = topics_module.Topics(bridge)
    topics.update()
    file = tmp_path / "sent.mcap"
    with foxglove.open_mcap(file, context=context):
        for name in ("flood", "scene"):
            topics.follow(name)
        payload = serialize_message(String(data="x"))
        for _ in range(10):
            node.receive["scene"](payload)
            for _ in range(100):
                node.receive["flood"](payload)
        wall.time = 0.02
        for _ in range(300):
            node.receive["flood"](payload)
    with file.open("rb") as stream:
        sent = Counter(channel.topic for _, channel, _ in make_reader(stream).iter_messages())
    assert sent == {"scene": 10, "flood": 512 + 200}  # 512 at once, 10,000 per second
