"""Transforms of the rotors in a recording, for viewers without a robot_state_publisher.

They are only in the file: in a running ROS graph they come from robot_state_publisher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from tf2_msgs.msg import TFMessage

from crazyflow_ros.description.urdf import rotor_joints
from crazyflow_ros.ros.messages.cdr import XYZW, layout
from crazyflow_ros.ros.messages.numeric_message import elements, in_elements
from crazyflow_ros.ros.messages.outbox import SerialisedMessages
from crazyflow_ros.ros.recording.recorder import Channel, Recorder
from crazyflow_ros.ros.topics import tf
from crazyflow_ros.ros.topics.state_topics import STATE_QOS
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import multiply


class _Rotors(NamedTuple):
    """The rotors of the present drones."""

    drones: tuple[str, ...]
    at_rest: np.ndarray
    """Attitudes xyzw at the angle 0, shape (4 M, 4)."""
    axes: np.ndarray
    """Unit vectors, shape (4 M, 3)."""
    messages: SerialisedMessages
    """One message with the transforms of all rotors."""


class RotorTransforms:
    """Records the attitudes of all rotors, in the physics thread.

    Args:
        recorder: The recorder.
        full_name: Returns the full name of a topic.
        drone_model: Model of the drones.
    """

    def __init__(
        self, recorder: Recorder, full_name: Callable[[str], str], drone_model: str
    ) -> None:
        self._recorder, self._drone_model = recorder, drone_model
        self._channel = Channel(full_name(tf.TOPIC), TFMessage, STATE_QOS)
        self._rotors: _Rotors | None = None

    def follow(self, drones: tuple[str, ...]) -> None:
        """Record these drones from now on."""
        rotors = [rotor for drone in drones for rotor in rotor_joints(self._drone_model, drone)]
        rotations = in_elements("transforms", len(rotors), "transform.rotation", XYZW)
        message = TFMessage(transforms=[tf.transform(*rotor.frame) for rotor in rotors])
        stamps = [f"{path}.header.stamp" for path in elements("transforms", len(rotors))]
        self._rotors = _Rotors(
            drones,
            np.array([rotor.frame.quat for rotor in rotors]),
            np.array([rotor.axis for rotor in rotors]),
            SerialisedMessages(layout([message], [rotations], stamps)),
        )

    def record(self, snapshot: Snapshot) -> None:
        """Record a state, unless it has other drones."""
        rotors = self._rotors
        if rotors is None or snapshot.names != rotors.drones:
            return
        half = snapshot.rotor_angle.reshape(-1, 1) / 2
        turns = np.hstack((rotors.axes * np.sin(half), np.cos(half)))
        rotors.messages.update(snapshot.time_ns, [multiply(rotors.at_rest, turns)])
        (place,) = rotors.messages.places
        self._recorder.put(self._channel, rotors.messages.words.tobytes()[place])
