"""The state of the drones in topics of each drone and of all drones, without noise.

<drone>/odom, <drone>/pose: poses in the odom frame and in the map frame, twists in the axes of the
drone. The odometry has no drift, so these frames are the same, and both topics and TF agree. All
values are exact, which covariances say as well as readers understand it, see `EXACT`.

<drone>/imu: specific force (+g upwards at rest), angular velocity, and attitude in the world
(REP 145).

<drone>/range: distance to what is below, from the range sensors in the mirror: the nearest point in
a cone about the x axis of `<drone>/range_link`; infinite means that nothing is seen (REP 117).

<drone>/joint_states: angles [rad] and speeds [rad/s] of the rotors. Joints are those of the robot
description; both are positive in flight.

~/odometry and ~/joint_states: poses in the map frame, twists and rotors of all drones in one
message, at little more cost than one drone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import PoseStamped, Transform, Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState, Range
from std_msgs.msg import Header

from crazyflow_ros.drones.instruments import VL53L1X_FIELD_OF_VIEW, VL53L1X_MAX_RANGE
from crazyflow_ros.drones.rotors import QUADROTOR
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below
from crazyflow_ros.ros.messages.numeric_message import (
    EXACT,
    ODOMETRY,
    POSE,
    READINGS,
    NumericMessage,
    diagonal,
    elements,
    in_elements,
    stamped,
)
from crazyflow_ros.ros.topics.state_topics import ALL, StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

StateMessage = NumericMessage[Snapshot]


def messages_of_each(
    read_range: Callable[[], np.ndarray], n_rotors: int
) -> dict[str, StateMessage]:
    """Return the messages of each drone by their topics, which are also the names of their rates.

    Args:
        read_range: Reads the range sensors at the time of the snapshot, (M,) [m].
        n_rotors: Number of rotors of a drone.
    """
    view, farthest = VL53L1X_FIELD_OF_VIEW, VL53L1X_MAX_RANGE
    down = Range(radiation_type=Range.INFRARED, field_of_view=view, max_range=farthest)
    return {
        "odom": StateMessage(_odometry, ODOMETRY, _motion),
        "pose": StateMessage(
            stamped(PoseStamped(), lambda _: frame_ids.MAP),
            POSE,
            lambda snapshot: (snapshot.pos, snapshot.quat),
        ),
        "imu": StateMessage(
            stamped(_exact_imu(), frame_ids.imu_link),
            [below("orientation", XYZW), *READINGS],
            lambda snapshot: (snapshot.quat, snapshot.ang_vel, snapshot.specific_force),
        ),
        "range": StateMessage(
            stamped(down, frame_ids.range_link), [["range"]], lambda _: (read_range(),)
        ),
        "joint_states": StateMessage(
            lambda drone: _rotors([drone], n_rotors), _rotor_paths(n_rotors), _turning
        ),
    }


def messages_of_all(drones: Sequence[str], n_rotors: int = QUADROTOR) -> dict[str, StateMessage]:
    """Return the messages with all drones by their topics, without the name of the node."""
    n = len(drones)
    odometry = MultiDOFJointState(
        header=Header(frame_id=frame_ids.MAP),
        joint_names=list(drones),
        transforms=[Transform() for _ in drones],
        twist=[Twist() for _ in drones],
    )
    return {
        "odometry": StateMessage(lambda _: odometry, paths_of_odometry(n), _motion),
        "joint_states": StateMessage(
            lambda _: _rotors(drones, n_rotors), _rotor_paths(n * n_rotors), _turning
        ),
    }


def paths_of_odometry(n: int) -> list[list[str]]:
    """Return the paths of poses and twists in a `MultiDOFJointState` with `n` rows."""
    return [
        in_elements("transforms", n, "translation", XYZ),
        in_elements("transforms", n, "rotation", XYZW),
        in_elements("twist", n, "linear", XYZ),
        in_elements("twist", n, "angular", XYZ),
    ]


def _odometry(drone: str) -> Odometry:
    header = Header(frame_id=frame_ids.odom(drone))
    odometry = Odometry(header=header, child_frame_id=frame_ids.base_link(drone))
    odometry.pose.covariance = odometry.twist.covariance = diagonal([EXACT] * 6)
    return odometry


def _exact_imu() -> Imu:
    exact = diagonal([EXACT] * 3)
    return Imu(
        orientation_covariance=exact,
        angular_velocity_covariance=exact,
        linear_acceleration_covariance=exact,
    )


def _motion(snapshot: Snapshot) -> Sequence[np.ndarray]:
    return snapshot.pos, snapshot.quat, snapshot.body_vel, snapshot.ang_vel


def _rotors(drones: Sequence[str], n_rotors: int) -> JointState:
    names = [f"{drone}_rotor{i}" for drone in drones for i in range(n_rotors)]
    zeros = [0.0] * len(names)
    return JointState(name=names, position=zeros, velocity=zeros)


def _rotor_paths(n_joints: int) -> list[list[str]]:
    return [elements(array, n_joints) for array in ("position", "velocity")]


def _turning(snapshot: Snapshot) -> Sequence[np.ndarray]:
    return snapshot.rotor_angle, snapshot.rotor_vel


def declare(simulator: Host, topics: StateTopics) -> None:
    """Add the topics."""

    def add_of_all() -> None:
        for name, message in messages_of_all(simulator.drones, n_rotors).items():
            topics.add("swarm", message, {f"~/{name}": ALL})

    def add_of_each() -> None:
        for name, message in of_each.items():
            topics.add(name, message, {f"{drone}/{name}": drone for drone in own.drones})

    own, n_rotors = simulator.interfaces, simulator.physics.commands.rules.n_rotors
    # The physics thread has just written the snapshot into the mirror.
    of_each = messages_of_each(simulator.physics.mirror.range, n_rotors)
    simulator.for_all_drones(add_of_all)
    own.follow(add_of_each)
