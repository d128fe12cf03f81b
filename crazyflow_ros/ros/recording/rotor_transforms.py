"""Transforms of the rotors in a recording, for viewers without a robot_state_publisher.

They are only in the file: in a running ROS graph they come from robot_state_publisher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tf2_msgs.msg import TFMessage

from crazyflow_ros.description.urdf import rotor_joints
from crazyflow_ros.ros.messages.cdr import XYZW, layout
from crazyflow_ros.ros.messages.numeric_message import elements, in_elements
from crazyflow_ros.ros.messages.outbox import SerialisedMessages
from crazyflow_ros.ros.recording.episode_file import Channel
from crazyflow_ros.ros.recording.recorder import Recorder
from crazyflow_ros.ros.topics import tf
from crazyflow_ros.ros.topics.state_topics import STATE_QOS
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import multiply

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class _Rotors(NamedTuple):
    drones: tuple[str, ...]
    at_rest: np.ndarray
    """Attitudes xyzw at the angle 0, shape (M n, 4), of n rotors each."""
    axes: np.ndarray
    """Unit vectors, shape (M n, 3)."""
    messages: SerialisedMessages
    """One message with the transforms of all rotors."""


class RotorTransforms:
    """Records the attitudes of all rotors, in the physics thread, as often as the joint states."""

    def __init__(self, simulator: Host, recorder: Recorder) -> None:
        self._simulator, self._recorder = simulator, recorder
        self._drone_model = simulator.parameters.drone_model
        self._channel = Channel(simulator.resolve_topic_name(tf.TOPIC), TFMessage, STATE_QOS)
        self._rotors: _Rotors | None = None
        simulator.for_all_drones(self._follow)
        # A different rate would divide the time into other steps, see `replay`.
        rate_hz, name = simulator.parameters.publish_rates.joint_states, "joint_states"
        simulator.physics.every(rate_hz, self._record, f"publish_rates.{name}", observes=True)

    def _follow(self) -> None:
        drones = self._simulator.drones
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

    def _record(self, snapshot: Snapshot) -> None:
        """Record a state, unless it has other drones."""
        rotors = self._rotors
        if rotors is None or snapshot.names != rotors.drones:
            return
        half = snapshot.rotor_angle.reshape(-1, 1) / 2
        turns = np.hstack((rotors.axes * np.sin(half), np.cos(half)))
        rotors.messages.update(snapshot.time_ns, [multiply(rotors.at_rest, turns)])
        (place,) = rotors.messages.places
        self._recorder.put(self._channel, rotors.messages.words.tobytes()[place])
