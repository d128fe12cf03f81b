"""States of drones, read from serialised messages without deserialising them."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState, MultiDOFJointState

from crazyflow_ros.view import messages
from crazyflow_ros.view.messages import FrameReader
from crazyflow_ros.view.panel.quantities import OF_STATE, labels_of


def vector(numbers: np.ndarray) -> Vector3:
    x, y, z = numbers.tolist()
    return Vector3(x=x, y=y, z=z)


def odometry(names: list[str], states: np.ndarray, seconds: int) -> bytes:
    message = MultiDOFJointState(joint_names=names)
    message.header.stamp.sec, message.header.frame_id = seconds, "map"
    for state in states:
        x, y, z, w = state[3:7].tolist()
        turn = Quaternion(x=x, y=y, z=z, w=w)
        message.transforms.append(Transform(translation=vector(state[:3]), rotation=turn))
        message.twist.append(Twist(linear=vector(state[7:10]), angular=vector(state[10:])))
    return serialize_message(message)


def joint_states(names: list[str], speeds: np.ndarray) -> bytes:
    n = speeds.shape[-1] if names else 4
    joints = [f"{name}_rotor{i}" for name in names for i in range(n)]
    angles = (2 * speeds).ravel().tolist()
    return serialize_message(
        JointState(name=joints, position=angles, velocity=speeds.ravel().tolist())
    )


def test_frames_are_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, random = FrameReader(), np.random.default_rng(2)
    learned: list[object] = []
    deserialised = messages.deserialised
    monkeypatch.setattr(messages, "deserialised", lambda *a: learned.append(a) or deserialised(*a))
    swarms = (["a", "b"], ["a", "b"], ["a", "c"], ["longer", "b", "c"], ["longer", "b", "c"])
    for seconds, names in enumerate(swarms):
        states, speeds = random.normal(size=(len(names), 13)), random.normal(size=(len(names), 4))
        frame = reader.read(odometry(names, states, seconds), joint_states(names, speeds))
        assert frame.names == tuple(names) and frame.time_ns == seconds * 10**9
        parts = frame.position, frame.attitude, frame.velocity
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), states[:, :10])
        np.testing.assert_array_equal(frame.rotor_speed, speeds)
    # Not each time: for each other swarm, and where serialisation has left other padding.
    assert 2 * 3 <= len(learned) < 2 * len(swarms)


def test_rotors_of_other_drones_stand_still() -> None:
    states, speeds = np.zeros((2, 13)), np.ones((3, 4))
    sent = odometry(["a", "b"], states, 1)
    for rotors in (None, joint_states(["a", "b", "c"], speeds)):
        np.testing.assert_array_equal(FrameReader().read(sent, rotors).rotor_speed, 0.0)


def test_drones_have_as_many_rotors_as_their_joints_say() -> None:
    reader, states, speeds = FrameReader(), np.zeros((2, 13)), np.arange(12.0).reshape(2, 6)
    sent = odometry(["a", "b"], states, 1)
    frame = reader.read(sent, joint_states(["a", "b"], speeds))
    np.testing.assert_array_equal(frame.rotor_speed, speeds)
    np.testing.assert_array_equal(reader.read(sent, None).rotor_speed, np.zeros((2, 6)))
    np.testing.assert_array_equal(OF_STATE["rotor speeds"].of(frame, 1, None), speeds[1])
    assert labels_of(OF_STATE["rotor speeds"], frame)[-1] == "5 [rad/s]"


def test_no_drones_are_an_empty_frame() -> None:
    frame = FrameReader().read(odometry([], np.zeros((0, 13)), 1), joint_states([], np.zeros(0)))
    assert frame.names == () and frame.position.shape == (0, 3)
