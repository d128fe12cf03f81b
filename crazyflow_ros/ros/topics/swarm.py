"""~/odometry and ~/joint_states: all drones in one message, which costs little more than one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import Transform, Twist
from sensor_msgs.msg import JointState, MultiDOFJointState

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below, layout
from crazyflow_ros.ros.topics.joint_states import rotor_names
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


class SwarmOdometry(StateTopics):
    """Per drone its pose in the map frame, and its twist in its own axes, as in `<drone>/odom`."""

    def __init__(self, simulator: SimulatorNode) -> None:
        drones = simulator.drones
        prototype = MultiDOFJointState(
            joint_names=list(drones),
            transforms=[Transform() for _ in drones],
            twist=[Twist() for _ in drones],
        )
        prototype.header.frame_id = frame_ids.MAP
        fields = (
            ("transforms", "translation", XYZ),
            ("transforms", "rotation", XYZW),
            ("twist", "linear", XYZ),
            ("twist", "angular", XYZ),
        )
        numbers = [
            [path for i in range(len(drones)) for path in below(f"{array}.{i}.{vector}", names)]
            for array, vector, names in fields
        ]
        messages = layout([prototype], ["header.stamp"], numbers)
        super().__init__(simulator, "swarm", MultiDOFJointState, ["~/odometry"], messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """As they are in the snapshot."""
        return snapshot.pos, snapshot.quat, snapshot.body_vel, snapshot.ang_vel


class SwarmJointStates(StateTopics):
    """The rotors of all drones, as in `<drone>/joint_states`."""

    def __init__(self, simulator: SimulatorNode) -> None:
        names = [name for drone in simulator.drones for name in rotor_names(drone)]
        zeros = [0.0 for _ in names]
        prototype = JointState(name=names, position=zeros, velocity=zeros)
        indices = [str(i) for i in range(len(names))]
        numbers = [below("position", indices), below("velocity", indices)]
        messages = layout([prototype], ["header.stamp"], numbers)
        super().__init__(simulator, "swarm", JointState, ["~/joint_states"], messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """As they are in the snapshot."""
        return snapshot.rotor_angle, snapshot.rotor_vel


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    SwarmOdometry(simulator)
    SwarmJointStates(simulator)
