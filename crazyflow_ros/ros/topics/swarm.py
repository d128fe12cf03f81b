"""~/odometry and ~/joint_states: all drones in one message, at little more cost than one drone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geometry_msgs.msg import Transform, Twist
from sensor_msgs.msg import MultiDOFJointState
from std_msgs.msg import Header

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below
from crazyflow_ros.ros.topics.joint_states import rotor_paths, rotor_states, rotors
from crazyflow_ros.ros.topics.state_topics import StateTopics

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


def declare(simulator: SimulatorNode) -> None:
    """Add the topics: poses in the map frame, twists and rotors as in each drone's own topics."""
    drones = simulator.drones
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
    StateTopics(
        simulator,
        "swarm",
        {"~/odometry": odometry},
        lambda snapshot: (snapshot.pos, snapshot.quat, snapshot.body_vel, snapshot.ang_vel),
        [
            [path for i in range(len(drones)) for path in below(f"{array}.{i}.{vector}", names)]
            for array, vector, names in fields
        ],
    )
    joint_states = {"~/joint_states": rotors(drones)}
    StateTopics(simulator, "swarm", joint_states, rotor_states, rotor_paths(len(drones)))
