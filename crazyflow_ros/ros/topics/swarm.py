"""~/odometry and ~/joint_states: all drones in one message, at little more cost than one drone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from geometry_msgs.msg import Transform, Twist
from sensor_msgs.msg import MultiDOFJointState
from std_msgs.msg import Header

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below
from crazyflow_ros.ros.topics.joint_states import rotor_paths, rotor_states, rotors
from crazyflow_ros.ros.topics.state_topics import Read, StateTopics

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


class SwarmMessage(NamedTuple):
    """A message with the state of all drones; see `StateTopics`."""

    prototype: Any
    read: Read
    numbers: list[list[str]]


def swarm_messages(drones: Sequence[str]) -> dict[str, SwarmMessage]:
    """Return the messages of all drones by the names of their topics, without the node's."""
    odometry = MultiDOFJointState(
        header=Header(frame_id=frame_ids.MAP),
        joint_names=list(drones),
        transforms=[Transform() for _ in drones],
        twist=[Twist() for _ in drones],
    )
    fields = (
        ("transforms", "translation", XYZ),
        ("transforms", "rotation", XYZW),
        ("twist", "linear", XYZ),
        ("twist", "angular", XYZ),
    )
    return {
        "odometry": SwarmMessage(
            odometry,
            lambda snapshot: (snapshot.pos, snapshot.quat, snapshot.body_vel, snapshot.ang_vel),
            [
                [path for i in range(len(drones)) for path in below(f"{array}.{i}.{vector}", names)]
                for array, vector, names in fields
            ],
        ),
        "joint_states": SwarmMessage(rotors(drones), rotor_states, rotor_paths(len(drones))),
    }


def declare(simulator: SimulatorNode) -> None:
    """Add the topics: poses in the map frame, twists and rotors as in each drone's own topics."""
    for name, message in swarm_messages(simulator.drones).items():
        prototypes = {f"~/{name}": message.prototype}
        StateTopics(simulator, "swarm", prototypes, message.read, message.numbers)
