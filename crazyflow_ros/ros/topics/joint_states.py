"""<drone>/joint_states: angles and speeds of the rotors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sensor_msgs.msg import JointState

from crazyflow_ros.ros.messages.cdr import below, layout
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

_ROTORS = range(4)


def rotor_names(drone: str) -> list[str]:
    """Names of the joints of a drone's rotors."""
    return [f"{drone}_rotor{i}" for i in _ROTORS]


class JointStateTopics(StateTopics):
    """Joints as in the robot description: rad, rad/s, positive in flight."""

    def __init__(self, simulator: SimulatorNode) -> None:
        zeros = [0.0 for _ in _ROTORS]
        prototypes = [
            JointState(name=rotor_names(drone), position=zeros, velocity=zeros)
            for drone in simulator.drones
        ]
        indices = [str(i) for i in _ROTORS]
        numbers = [below("position", indices), below("velocity", indices)]
        messages = layout(prototypes, ["header.stamp"], numbers)
        topics = [f"{drone}/joint_states" for drone in simulator.drones]
        super().__init__(simulator, "joint_states", JointState, topics, messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """As they are in the snapshot."""
        return snapshot.rotor_angle, snapshot.rotor_vel


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    JointStateTopics(simulator)
