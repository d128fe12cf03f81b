"""Patched serialised messages against messages that ROS itself serialises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import OccupancyGrid, Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import BatteryState, JointState, LaserScan
from std_msgs.msg import Header

from crazyflow_ros.ros.messages import cdr
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below, find_numbers, joined, layout
from crazyflow_ros.ros.messages.outbox import SerialisedMessages
from crazyflow_ros.ros.messages.serialisation import serialised
from crazyflow_ros.ros.messages.times import nanoseconds

POSE = [below("pose.position", XYZ), below("pose.orientation", XYZW)]
TIME_NS = 1_234_567_890_123
RNG = np.random.default_rng(1)


def pose_stamped(frame_id: str, values: np.ndarray) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = frame_id
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(TIME_NS, 1_000_000_000)
    position, orientation = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = values[:3].tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = values[3:].tolist()
    return message


def payloads(messages: SerialisedMessages, numbers: Iterable[int]) -> list[bytes]:
    return [messages.words.tobytes()[messages.places[i]] for i in numbers]


def test_padding_may_look_like_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding is not initialised; among a thousand drones it looked like one of their numbers."""
    padding: list[bytes] = []

    def serialised_with_remains(message: PoseStamped) -> bytes:
        payload = serialised(message)
        remains, padding[:] = b"".join(padding), [*padding, payload[-8:]]
        return payload + (remains or payload[-8:])

    expected = find_numbers(PoseStamped(), POSE[0] + POSE[1])
    monkeypatch.setattr(cdr, "serialised", serialised_with_remains)
    assert find_numbers(PoseStamped(), POSE[0] + POSE[1]) == expected
    assert len(padding) == 2


# Frames of all lengths, for the padding before the numbers depends on them.
@pytest.mark.parametrize("length", range(9))
def test_patched_is_what_ros_serialises(length: int) -> None:
    frame_id = "x" * length
    prototype = PoseStamped()
    prototype.header.frame_id = frame_id
    values = RNG.normal(size=7)
    messages = SerialisedMessages(layout([prototype], POSE))
    messages.update(TIME_NS, [values[None, :3], values[None, 3:]])
    expected = pose_stamped(frame_id, values)
    # Not the bytes themselves: padding is not initialised.
    assert len(payloads(messages, [0])[0]) == len(serialize_message(expected))
    assert deserialize_message(payloads(messages, [0])[0], PoseStamped) == expected


def test_messages_of_different_lengths_do_not_mix() -> None:
    names = ["a", "bcd", "", "efghijk"]
    prototypes = []
    for name in names:
        prototype = PoseStamped()
        prototype.header.frame_id = name
        prototypes.append(prototype)
    messages = SerialisedMessages(layout(prototypes, POSE))
    for _ in range(2):  # the second update leaves nothing of the first
        values = RNG.normal(size=(len(names), 7))
        messages.update(TIME_NS, [values[:, :3], values[:, 3:]])
        for i, name in enumerate(names):
            message = deserialize_message(payloads(messages, [i])[0], PoseStamped)
            assert message == pose_stamped(name, values[i])


def test_what_is_not_named_stays() -> None:
    prototype = Odometry(child_frame_id="cf0/base_link")
    prototype.header.frame_id = "cf0/odom"
    prototype.pose.covariance = RNG.normal(size=36)
    numbers = [below("twist.twist.linear", XYZ)]
    messages = SerialisedMessages(layout([prototype], numbers))
    messages.update(TIME_NS, [np.array([[1.0, -2.0, 3.0]])])
    message = deserialize_message(payloads(messages, [0])[0], Odometry)
    assert (message.twist.twist.linear.x, message.twist.twist.linear.y) == (1.0, -2.0)
    assert message.child_frame_id == "cf0/base_link"
    assert message.pose == prototype.pose
    assert message.twist.twist.angular == prototype.twist.twist.angular


def test_elements_of_arrays_of_a_fixed_size() -> None:
    diagonal = [f"pose.covariance.{7 * i}" for i in range(6)]
    messages = SerialisedMessages(layout([Odometry(child_frame_id="abc")], [diagonal], []))
    messages.update(0, [np.arange(1.0, 7.0)[None]])
    found = deserialize_message(payloads(messages, [0])[0], Odometry)
    np.testing.assert_array_equal(found.pose.covariance.reshape(6, 6), np.diag(np.arange(1.0, 7.0)))
    assert not found.twist.covariance.any()


def test_many_stamps_in_one_message() -> None:
    tf2_msgs = pytest.importorskip("tf2_msgs.msg", reason="tf2_msgs is not installed")
    transforms = [TransformStamped(child_frame_id="c" * i) for i in range(5)]
    stamps = [f"transforms.{i}.header.stamp" for i in range(5)]
    numbers = [f"transforms.{i}.transform.translation.x" for i in range(5)]
    prototype = tf2_msgs.TFMessage(transforms=transforms)
    messages = SerialisedMessages(layout([prototype], [numbers], stamps))
    messages.update(TIME_NS, [np.arange(5.0)])
    received = deserialize_message(payloads(messages, [0])[0], tf2_msgs.TFMessage).transforms
    assert [t.transform.translation.x for t in received] == list(range(5))
    assert {(t.header.stamp.sec, t.header.stamp.nanosec) for t in received} == {
        divmod(TIME_NS, 1_000_000_000)
    }


def test_types_are_updated_together() -> None:
    pose, joints = PoseStamped(), JointState(position=[0.0])
    pose.header.frame_id = "abc"
    battery = BatteryState(cell_voltage=[0.0])
    messages = SerialisedMessages(
        joined(
            [
                layout([pose, pose], POSE),
                layout([battery], [["voltage"]]),
                layout([joints], [["position.0"]]),
            ]
        )
    )
    values = RNG.normal(size=(2, 7))
    messages.update(TIME_NS, [values[:, :3], values[:, 3:], np.array([[1.5]]), np.array([[2.5]])])
    first, second, third, last = payloads(messages, range(4))
    assert deserialize_message(first, PoseStamped) == pose_stamped("abc", values[0])
    assert deserialize_message(second, PoseStamped) == pose_stamped("abc", values[1])
    assert deserialize_message(third, BatteryState).voltage == 1.5
    assert list(deserialize_message(last, JointState).position) == [2.5]
    assert payloads(messages, [3, 0]) == [last, first]


def test_a_series_is_what_one_after_the_other_would_be() -> None:
    pose, battery = PoseStamped(), BatteryState()
    layouts = [layout([pose, pose], POSE), layout([battery], [["voltage", "charge"]])]
    messages = SerialisedMessages(joined(layouts))
    times = [TIME_NS + 2_000_000 * i for i in range(3)]
    blocks = [RNG.normal(size=(3, 2, 3)), RNG.normal(size=(3, 2, 4)), RNG.normal(size=(3, 1, 2))]
    rows = [np.asfortranarray(block.reshape(-1, block.shape[-1])) for block in blocks]
    series = messages.series(np.array(times)[:, None], rows)
    delays = 10_000_000 * np.arange(3)  # of each message
    late = messages.series(np.array(times)[:, None] - delays, rows)
    for i, time in enumerate(times):
        messages.update(time, [block[i] for block in blocks])
        np.testing.assert_array_equal(series[i], messages.words)
        for number, delay in enumerate(delays.tolist()):
            messages.update(time - delay, [block[i] for block in blocks])
            place = messages.places[number]
            assert late[i].tobytes()[place] == payloads(messages, [number])[0]


def test_prototype_is_left_as_it_is() -> None:
    prototype = PoseStamped()
    find_numbers(prototype, POSE[0], [])
    assert prototype == PoseStamped()


@pytest.mark.parametrize(
    ("prototype", "path", "reason"),
    [
        (JointState(), "header.stamp.sec", "JointState.header.stamp.sec: expected a float, got 0"),
        (JointState(), "header.frame_id", "JointState.header.frame_id: expected a float, got ''"),
        (PoseStamped(), "pose.position.q", "PoseStamped.pose.position.q: there is no such field"),
        (JointState(), "position.0", "JointState.position.0: there is no such field"),
    ],
)
def test_wrong_path_is_refused(prototype: Any, path: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        find_numbers(prototype, [path], [])


def test_many_floats_are_told_apart() -> None:
    """Numbers drawn from the float32 between 1 and 2 would not be."""
    n = 20_000
    values = RNG.uniform(size=n).astype(np.float32)
    paths = [f"ranges.{i}" for i in range(n)]
    messages = SerialisedMessages(layout([LaserScan(ranges=[0.0] * n)], [paths]))
    messages.update(TIME_NS, [values.astype(float)[None]])
    message = deserialize_message(payloads(messages, [0])[0], LaserScan)
    np.testing.assert_array_equal(message.ranges, values)


def test_both_sizes_in_one_block() -> None:
    grids = [OccupancyGrid(), OccupancyGrid(header=Header(frame_id="abc"))]
    paths = [["info.resolution", "info.origin.position.x"], ["info.origin.position.y"]]
    messages = SerialisedMessages(layout(grids, paths, ["header.stamp", "info.map_load_time"]))
    messages.update(TIME_NS, [np.array([[0.5, 1.0], [1.5, 2.0]]), np.array([[3.0], [4.0]])])
    found = [deserialize_message(payload, OccupancyGrid) for payload in payloads(messages, [0, 1])]
    assert [grid.info.resolution for grid in found] == [0.5, 1.5]
    assert [grid.info.origin.position.x for grid in found] == [1.0, 2.0]
    assert [grid.info.origin.position.y for grid in found] == [3.0, 4.0]
    assert {nanoseconds(grid.info.map_load_time) for grid in found} == {TIME_NS}
    assert [grid.header.frame_id for grid in found] == ["", "abc"]
