"""Serialised messages against other serialisers: publishers of rclpy, and rosbags."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_client import Client, own_domain
from sensor_msgs.msg import CameraInfo, JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray
from wire import canonical, check

from crazyflow_ros.ros.messages.message_definitions import type_of
from crazyflow_ros.ros.messages.serialisation import deserialised, serialised

INSTALLED = sorted(
    f"{path.parts[-3]}/msg/{path.stem}" for path in Path(sys.prefix).glob("share/*/msg/*.msg")
)
DOMAIN = own_domain(__name__)


def value(kind: str, rng: np.random.Generator) -> Any:
    """A value of a type as rclpy names it; some sequences are empty."""
    if found := re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>", kind):
        return [value(found[1], rng) for _ in range(rng.integers(0, min(3, int(found[2] or 9))))]
    if found := re.fullmatch(r"(.+)\[(\d+)\]", kind):
        return [value(found[1], rng) for _ in range(int(found[2]))]
    if "/" in kind:
        return filled(type_of(kind), rng)
    if "string" in kind:
        return "é" * bool(rng.integers(2)) + "x" * int(rng.integers(0, 9))
    if kind in ("float", "double"):
        return float(np.float32(rng.normal()))
    if kind == "octet":
        return rng.bytes(1)
    return bool(rng.integers(2)) if kind == "boolean" else int(rng.integers(0, 100))


def filled(kind: Any, rng: np.random.Generator) -> Any:
    fields = kind.get_fields_and_field_types()
    return kind(**{name: value(of, rng) for name, of in fields.items()})


@pytest.mark.parametrize("package", sorted({name.partition("/")[0] for name in INSTALLED}))
def test_messages_of_every_installed_type_are_as_others_write_them(package: str) -> None:
    rng = np.random.default_rng(0)
    for name in INSTALLED:
        if name.startswith(f"{package}/"):
            kind = type_of(name)
            for message in (kind(), *(filled(kind, rng) for _ in range(5))):
                check(serialised(message), kind)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(DOMAIN) as client:
        yield client


@pytest.mark.parametrize(
    "message",
    [
        JointState(name=["left", "right"], position=[0.1, 0.2], velocity=[3.0, 4.0]),
        JointState(name=["b"], effort=[5.0]),
        CameraInfo(width=64, height=48),
        Float64MultiArray(),
        JointTrajectory(joint_names=["c"], points=[JointTrajectoryPoint(positions=[0.5])] * 3),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_are_what_publishers_of_rclpy_send(client: Client, message: Any) -> None:
    kind, heard = type(message), []
    topic = f"sent/{kind.__name__}"
    client.node.create_subscription(kind, topic, heard.append, 10, raw=True)
    client.publish(topic, message)
    sent = client.until(lambda: heard and heard[-1], "message")
    assert len(serialised(message)) == len(sent)
    assert canonical(serialised(message), kind) == canonical(sent, kind)


@pytest.mark.parametrize(
    ("kind", "place", "size", "order"),
    [
        (MarkerArray, 4, 8_000_000, "little"),
        (MarkerArray, 4, 8_000_000, "big"),
        (MarkerArray, 4, 20_000_000, "little"),
        (MultiDOFJointState, 20, 30_000_000, "little"),
        (JointTrajectory, 20, 30_000_000, "little"),
    ],
)
def test_a_message_that_says_that_it_has_many_elements_takes_little_memory(
    kind: Any, place: int, size: int, order: str
) -> None:
    """ROS makes room for all of them before it finds that they are not there."""
    content = bytearray(size)
    content[:4] = b"\0\1\0\0" if order == "little" else bytes(4)
    content[place : place + 4] = (size - place - 4).to_bytes(4, order)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=rf"a \w+/msg/{kind.__name__} of \d+"):
        deserialised(bytes(content), kind)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # kB


def test_large_texts_and_scenes_are_read() -> None:
    """A checkpoint in a text, and a scene of many triangles."""
    text = String(data="a" * 50_000_000)
    assert deserialised(serialised(text), String) == text
    scene = MarkerArray(markers=[filled(Marker, np.random.default_rng(k)) for k in range(3000)])
    assert deserialised(serialised(scene), MarkerArray) == scene


def test_damaged_messages_are_refused_by_their_type() -> None:
    for content in (b"", b"\0", b"\0\1\0\0\xff\xff\xff\xff"):
        with pytest.raises(ValueError, match="a sensor_msgs/msg/JointState cannot be read"):
            deserialised(content, JointState)
