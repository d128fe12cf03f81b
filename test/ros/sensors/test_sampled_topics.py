"""What sensors of the node tell after resets, while time stands still, and as drones come and go.

Their topics are fed by hand: no process, no discovery, and each drone is as far to the east as
there were ticks, so that every pose tells when it was measured.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from physics_double import TIMEOUT, Handle, Physics
from rclpy.logging import get_logger
from rclpy.serialization import deserialize_message
from ros_client import time_ns

from crazyflow_ros.ros.callback_guard import CallbackGuard
from crazyflow_ros.ros.listeners import Listeners
from crazyflow_ros.ros.regular_calls import RegularCalls
from crazyflow_ros.ros.sensors import sensor_threads
from crazyflow_ros.ros.sensors.sensors_file import load
from crazyflow_ros.runtime import DroneLives, ResetScope

FILE = """
all:
  imu: {type: imu, rate: 50, gyro: {density: 0.1, std: 0.2, bias: 1.0, random_walk: 0.5}}
  mocap: {type: motion_capture, rate: 50, delay: 0.04, attitude: {std: 0.1}}
  uwb: {type: anchor_sensor.ANCHOR, rate: 50, anchor: [0.0, 3.0, 4.0]}
  last: {type: barometer, rate: 50}
"""
PERIOD, LATE = 10, 20  # ticks
WALL_NS = 2_000_000  # of a tick
Told = dict[tuple[str, int], Any]
"""Messages by topic and tick of their stamp."""


class Node(Physics):
    """The parts of a node that sensors need; some topics nobody listens to."""

    def __init__(self, folder: Path, drones: Sequence[str] = ("cf0", "cf1")) -> None:
        super().__init__()
        self.drones = tuple(drones)
        self.interfaces = self  # all drones have topics of their own
        self.use(list(drones))
        self.lives = DroneLives(self.snapshot)
        (file := folder / "sensors.yaml").write_text(FILE)
        self.sensor_file = load(str(file), ["cf0", "cf1"], "cf2x_L250")
        self.publishers: list[Any] = []
        self.unheard: set[str] = set()
        self.sent: queue.Queue[tuple[str, int, Any]] = queue.Queue()
        node: Any = self
        # They are not made: who listens changes when this test says so.
        self.regular_calls = RegularCalls(CallbackGuard(get_logger("test")))
        self.listeners = Listeners(node, node.regular_calls, lambda: self.paused)
        self.look = self.listeners.look
        self.node = node
        sensor_threads.declare(node, self.sensor_file)
        self.look()

    def for_each_drone(self, callback: Callable[[str], None]) -> None:
        for drone in ("cf0", "cf1", "a"):
            callback(drone)

    def on_destroy(self, end: Callable[[], None]) -> None:
        del end  # the thread lasts as long as the process

    def resolve_topic_name(self, topic: str) -> str:
        return topic

    def get_subscriptions_info_by_topic(self, topic: str) -> list[Any]:
        return []

    def create_publisher(self, kind: Any, topic: str, qos: Any, **_: Any) -> Any:
        def send(payload: bytes) -> None:
            message = deserialize_message(payload, kind)
            self.sent.put((topic, time_ns(message.header.stamp) // WALL_NS, message))

        return SimpleNamespace(
            topic_name=topic,
            handle=Handle(send),
            get_subscription_count=lambda: int(topic not in self.unheard),
        )

    def fly(self, ticks: Sequence[int], told: Told) -> list[tuple[str, int]]:
        """Feed ticks, wait until all is sensed, and add what is told; topics and ticks of that."""
        while not self.sent.empty():
            self.sent.get()
        self.feed(ticks)
        order, left = [], len(set(ticks))
        while left:
            topic, tick, message = self.sent.get(timeout=TIMEOUT)
            order.append((topic, tick))
            told[topic, tick] = message
            left -= topic == "cf1/last"
        return order

    def now_with(self, *drones: str) -> None:
        """Let drones come and go."""
        self.drones = drones
        self.use(list(drones))
        self.lives.note_drones(self.snapshot)


def pick(told: Told, topic: str) -> dict[int, Any]:
    return {tick: message for (other, tick), message in told.items() if other == topic}


def test_a_late_pose_has_the_stamp_of_when_it_was_measured(tmp_path: Path) -> None:
    node, told = Node(tmp_path), Told()

    def check(ticks: Sequence[int], first: dict[str, int]) -> None:
        """Every pose is of its stamp, and the first of each drone of this tick."""
        now: Told = {}
        order = node.fly(ticks, now)
        told.update(now)
        for drone, expected in first.items():
            topic = f"{drone}/mocap"
            assert next(tick for other, tick in order if other == topic) == expected
            for tick, message in pick(now, topic).items():
                assert message.pose.position.x == tick
            assert max(pick(now, topic)) == ticks[-1] - LATE

    check(range(10, 101, PERIOD), {"cf0": 10, "cf1": 10})
    node.put_back(["cf0"])
    check(range(110, 201, PERIOD), {"cf0": 110, "cf1": 90})
    node.put_back(["cf0", "cf1"])
    check(range(210, 301, PERIOD), {"cf0": 210, "cf1": 210})
    node.tick = 1
    node.put_back(["cf0", "cf1"], ResetScope.time | ResetScope.state)
    check(range(10, 101, PERIOD), {"cf0": 10, "cf1": 10})
    node.put_back(["cf0"])
    node.tick = 1
    node.put_back([], ResetScope.time)
    check(range(10, 101, PERIOD), {"cf0": 10, "cf1": 10})
    node.put_back(["cf0"])
    kept = node.lives.capture()
    node.fly(range(160, 201, PERIOD), {})
    node.lives.restore(kept)
    check(range(160, 251, PERIOD), {"cf0": 160, "cf1": 160})  # what was under way is not kept


def test_a_sensor_of_the_users_own_is_published(tmp_path: Path) -> None:
    node, told = Node(tmp_path), Told()
    node.fly([10, 20], told)
    message = told["cf1/uwb", 20]
    assert message.header.frame_id == "cf1/base_link"
    assert message.range == pytest.approx(np.linalg.norm([20.0, 3.0, 4.0]))


def test_while_time_stands_still_nothing_is_sensed_again(tmp_path: Path) -> None:
    still, moved = Told(), Told()
    node = Node(tmp_path)
    node.fly(range(10, 201, PERIOD), still)
    node.fly(range(210, 301, PERIOD), still)
    node = Node(tmp_path)
    node.fly(range(10, 201, PERIOD), moved)
    node.feed([200] * 5)
    order = node.fly(range(210, 301, PERIOD), moved)
    ticks = [tick for topic, tick in order if topic == "cf0/imu/data_raw"]
    assert ticks == list(range(210, 301, PERIOD))
    assert moved == still
    node.put_back(["cf0", "cf1"])
    node.fly([300], moved)  # after a reset there is a new one
    assert moved["cf0/imu/data_raw", 300] != still["cf0/imu/data_raw", 300]


@pytest.mark.parametrize("put_back", [[], ["cf0"], ["cf0", "cf1"]])
def test_errors_after_a_checkpoint_are_those_of_then(tmp_path: Path, put_back: list[str]) -> None:
    """Also in another process, in which other things had happened before."""
    first, again, elsewhere = Told(), Told(), Told()
    node, other = Node(tmp_path), Node(tmp_path)
    node.fly(range(10, 201, PERIOD), {})
    node.put_back(["cf1"])
    node.fly(range(210, 301, PERIOD), {})
    kept = json.loads(json.dumps(node.lives.capture()))
    node.fly(range(310, 401, PERIOD), first)
    node.put_back(put_back)
    node.fly(range(410, 501, PERIOD), {})
    node.lives.restore(kept)
    node.fly(range(310, 401, PERIOD), again)
    other.fly(range(10, 101, PERIOD), {})
    other.put_back(["cf0"])
    other.fly(range(110, 151, PERIOD), {})
    other.lives.restore(kept)
    other.fly(range(310, 401, PERIOD), elsewhere)
    for told in (again, elsewhere):
        for topic in ("cf0/imu/data_raw", "cf1/imu/data_raw"):
            assert pick(told, topic) == pick(first, topic) != {}


@pytest.mark.parametrize("away", [200, 2000])
def test_errors_do_not_depend_on_who_listens_when(tmp_path: Path, away: int) -> None:
    """Nobody does for some ticks, in which drones are put back."""
    always, late = Told(), Told()
    for told in (always, late):
        node = Node(tmp_path)
        for resets in (["cf0", "cf1"], ["cf1"], []):
            start = node.tick // PERIOD * PERIOD + PERIOD
            quiet = {f"{d}/{topic}" for d in node.drones for topic in ("imu/data_raw", "mocap")}
            node.unheard = quiet if told is late else set()
            node.look()
            node.fly(range(start, start + away, PERIOD), told)
            node.put_back(resets)
            node.fly(range(start + away, start + away + 100, PERIOD), told)
            node.unheard = set()
            node.look()
            node.fly(range(start + away + 100, start + away + 200, PERIOD), told)
    for drone in ("cf0", "cf1"):
        for topic in (f"{drone}/imu/data_raw", f"{drone}/mocap"):
            assert 20 < len(pick(late, topic)) <= 30
            for tick, message in pick(late, topic).items():
                assert message == always[topic, tick]


def test_errors_and_what_is_under_way_belong_to_the_drone(tmp_path: Path) -> None:
    alone, among = Told(), Told()
    for told in (alone, among):
        node = Node(tmp_path, ["cf0", "cf1"] if told is among else ["cf1"])
        for drones in (["cf0", "cf1"], ["a", "cf0", "cf1"], ["cf1", "a"], ["cf0", "cf1"]):
            if told is among and tuple(drones) != node.drones:
                node.now_with(*drones)
            node.fly(range(node.tick + PERIOD, node.tick + 150, PERIOD), told)
    for topic in ("cf1/imu/data_raw", "cf1/mocap"):
        assert len(pick(among, topic)) > 50
        assert pick(among, topic) == pick(alone, topic)
    ticks = range(PERIOD, 100, PERIOD)
    rates = [
        [among[f"{drone}/imu/data_raw", tick].angular_velocity.x for tick in ticks]
        for drone in ("cf0", "cf1")
    ]
    assert not np.isclose(*rates).any()
