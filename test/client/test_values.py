"""Messages of plain values and back, as on the command line."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Path
from rcl_interfaces.msg import ParameterValue
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import ByteMultiArray, UInt8
from std_srvs.srv import SetBool

from crazyflow_ros.client.values import message_from_values, text_of_message


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (PoseStamped, {"header": {"frame_id": "map", "stamp": {"sec": 3}}, "pose": {}}),
        (PoseWithCovarianceStamped, {"pose": {"covariance": [0.5] * 36}}),
        (Path, {"poses": [{"pose": {"position": {"x": 1}}}, {"header": {"frame_id": "a"}}]}),
        (JointState, {"name": ["a", "b"], "position": [1, 2.5], "velocity": []}),
        (Image, {"data": [0, 255], "is_bigendian": 1}),
        (ByteMultiArray, {"data": [1, 255]}),
        (SetBool.Request, {"data": True}),
        (ParameterValue, {"integer_array_value": [-(2**63), 2**63 - 1]}),
    ],
)
def test_values_become_a_message_and_come_back(kind: Any, values: dict[str, Any]) -> None:
    message = message_from_values(kind, values)
    sent = deserialize_message(serialize_message(message), kind)  # rclpy takes it as it is
    assert sent == message

    def check(given: Any, found: Any) -> None:
        if isinstance(given, dict):
            for name, value in given.items():
                check(value, found[name])
        elif isinstance(given, list):
            assert len(given) == len(found)
            for one, other in zip(given, found):
                check(one, other)
        else:
            assert given == found

    check(values, yaml.safe_load(text_of_message(sent)))


def test_numbers_of_any_notation() -> None:
    values = yaml.safe_load("{pose: {position: {x: 1e-3, y: 2, z: .5}}}")
    position = message_from_values(PoseStamped, values).pose.position
    assert (position.x, position.y, position.z) == (0.001, 2.0, 0.5)


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        (PoseStamped, {"pos": {}}, "PoseStamped has no field 'pos'; did you mean 'pose'?"),
        (PoseStamped, {"pose": {"q": 1}}, "pose has no field 'q'; it has position, orientation"),
        (PoseStamped, {"pose": 3}, r"pose is not a value but has fields: write \{position: ...\}"),
        (PoseStamped, {"pose": {"position": {"x": "up"}}}, "pose.position.x is a number, not up"),
        (PoseStamped, {"pose": {"position": {"x": True}}}, "is a number, not True"),
        (PoseStamped, {"header": {"frame_id": 7}}, "header.frame_id is a text: write '7'"),
        (PoseStamped, {"header": {"stamp": {"sec": 2**31}}}, "whole number from .* to 2147483647"),
        (PoseStamped, {"header": {"stamp": {"nanosec": -1}}}, "whole number from 0 to"),
        (PoseWithCovarianceStamped, {"pose": {"covariance": [1.0]}}, "has 36 elements, not 1"),
        (JointState, {"name": "a"}, r"name is a list: write \[...\] instead of a"),
        (JointState, {"name": [1]}, r"name\[0\] is a text"),
        (SetBool.Request, {"data": "yes"}, "data is true or false, not yes"),
        (SetBool.Request, [True], r"SetBool_Request is not a value but has fields"),
        (UInt8, {"data": 256}, "data is a whole number from 0 to 255, not 256"),
    ],
)
def test_values_that_do_not_fit_are_named(kind: Any, values: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        message_from_values(kind, values)
