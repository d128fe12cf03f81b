"""<drone>/joint_states: angles [rad] and speeds [rad/s] of the rotors.

Joints are those of the robot description; both are positive in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sensor_msgs.msg import JointState

from crazyflow_ros.ros.messages.cdr import below
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

_N_ROTORS = 4


def rotors(drones: Sequence[str]) -> JointState:
    """Return a message with the rotors of some drones."""
    names = [f"{drone}_rotor{i}" for drone in drones for i in range(_N_ROTORS)]
    zeros = [0.0] * len(names)
    return JointState(name=names, position=zeros, velocity=zeros)


def rotor_paths(n_drones: int) -> list[list[str]]:
    """Return the paths of the numbers in the message of `rotors`."""
    indices = [str(i) for i in range(n_drones * _N_ROTORS)]
    return [below("position", indices), below("velocity", indices)]


def rotor_states(snapshot: Snapshot) -> Sequence[np.ndarray]:
    """Return the numbers at `rotor_paths`."""
    return snapshot.rotor_angle, snapshot.rotor_vel


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    messages = {f"{drone}/joint_states": rotors([drone]) for drone in simulator.drones}
    StateTopics(simulator, "joint_states", messages, rotor_states, rotor_paths(1))
