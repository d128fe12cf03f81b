"""Serialised messages against other serialisers: publishers of rclpy, and rosbags."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_client import Client, own_domain
from sensor_msgs.msg import CameraInfo, JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from wire import canonical, check

from crazyflow_ros.ros.messages.serialisation import serialised
from crazyflow_ros.ros.recording.message_definitions import type_of

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
    client = Client(DOMAIN)
    yield client
    client.close()


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
