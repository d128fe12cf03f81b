"""Nodes that use tf2_ros: ROS's own where it is installed, else the one of `overlays/`."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import TransformStamped
from rclpy.duration import Duration
from rclpy.time import Time
from scipy.spatial.transform import Rotation

tf2_ros = pytest.importorskip("tf2_ros", reason="make setup installs it")


def stamped(
    parent: str, child: str, seconds: float, x: float, yaw: float = 0.0
) -> TransformStamped:
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, Time(seconds=seconds).to_msg()
    message.transform.translation.x = x
    quat = Rotation.from_euler("z", yaw).as_quat()
    rotation = message.transform.rotation
    rotation.x, rotation.y, rotation.z, rotation.w = quat.tolist()
    return message


@pytest.fixture
def buffer() -> tf2_ros.Buffer:
    made = tf2_ros.Buffer()
    made.set_transform_static(stamped("base_link", "camera", 0.0, 0.1), "test")
    for second in (10.0, 11.0):
        made.set_transform(stamped("map", "base_link", second, second, np.pi / 2), "test")
    made.set_transform_static(stamped("moon", "crater", 0.0, 1.0), "test")
    return made


def test_the_latest_transform_and_one_between_two(buffer: tf2_ros.Buffer) -> None:
    latest = buffer.lookup_transform("map", "camera", Time())
    assert (latest.header.frame_id, latest.child_frame_id) == ("map", "camera")
    assert latest.header.stamp.sec == 11
    at = latest.transform.translation
    assert np.allclose((at.x, at.y, at.z), (11.0, 0.1, 0.0))
    half = buffer.lookup_transform("camera", "map", Time(seconds=10.25))
    # Seen from the camera, which looks north, the map's origin is to its left.
    at = half.transform.translation
    assert np.allclose((at.x, at.y, at.z), (-0.1, 10.25, 0.0))
    assert np.isclose(half.transform.rotation.z, -np.sqrt(0.5))
    message = buffer.lookup_transform("map", "camera", Time(seconds=10.25).to_msg())
    assert message.header.stamp.nanosec == 250_000_000


def test_what_is_missing_raises_as_in_ros(buffer: tf2_ros.Buffer) -> None:
    for target, source, time, error in (
        ("map", "nobody", Time(), tf2_ros.LookupException),
        ("map", "crater", Time(), tf2_ros.ConnectivityException),
        ("map", "camera", Time(seconds=12), tf2_ros.ExtrapolationException),
        ("map", "camera", Time(seconds=9), tf2_ros.ExtrapolationException),
    ):
        assert not buffer.can_transform(target, source, time)
        found, reason = buffer.can_transform(target, source, time, return_debug_tuple=True)
        assert not found and reason
        with pytest.raises(error):
            buffer.lookup_transform(target, source, time)
        with pytest.raises(tf2_ros.TransformException):
            buffer.lookup_transform(target, source, time, timeout=Duration(seconds=0.05))
    assert buffer.can_transform("map", "camera", Time())


def test_a_transform_to_come_is_waited_for(buffer: tf2_ros.Buffer) -> None:
    waiting = buffer.wait_for_transform_async("map", "camera", Time(seconds=12))
    lookup = buffer.lookup_transform_async("map", "camera", Time(seconds=12))
    assert not waiting.done()
    buffer.set_transform(stamped("map", "base_link", 13.0, 13.0), "test")
    assert waiting.done()
    with pytest.raises(StopIteration) as found:
        lookup.send(None)
    assert found.value.value.header.stamp.sec == 12


def test_clear_forgets(buffer: tf2_ros.Buffer) -> None:
    assert "base_link" in buffer.all_frames_as_yaml()
    buffer.clear()
    with pytest.raises(tf2_ros.TransformException):
        buffer.lookup_transform("map", "base_link", Time())
