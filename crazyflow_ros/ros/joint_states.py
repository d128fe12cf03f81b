"""<drone>/joint_states: angles and speeds of the rotors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sensor_msgs.msg import JointState

from crazyflow_ros.ros.cdr import SerialisedMessages, below
from crazyflow_ros.ros.topics import StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_ROTORS = range(4)


class JointStateTopics(StateTopics):
    """Joints as in the robot description: rad, rad/s, positive in flight."""

    def __init__(self, simulator: Simulator) -> None:
        zeros = [0.0 for _ in _ROTORS]
        prototypes = [
            JointState(name=[f"{drone}_rotor{i}" for i in _ROTORS], position=zeros, velocity=zeros)
            for drone in simulator.drones
        ]
        indices = [str(i) for i in _ROTORS]
        blocks = {name: below(name, indices) for name in ("position", "velocity")}
        messages = SerialisedMessages(prototypes, ["header.stamp"], blocks)
        topics = [f"{drone}/joint_states" for drone in simulator.drones]
        super().__init__(simulator, "joint_states", JointState, topics, messages)

    def fill(self, snapshot: Snapshot) -> None:
        """As they are in the snapshot."""
        self.messages.write("position", snapshot.rotor_angle)
        self.messages.write("velocity", snapshot.rotor_vel)


def declare(simulator: Simulator) -> None:
    """Add the topics."""
    JointStateTopics(simulator)
