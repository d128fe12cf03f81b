"""<drone>/odom and <drone>/pose: where the drones are.

The odometry has no drift: the odom frame is the map frame, so both topics and TF agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry

from crazyflow_ros.ros import frame_ids
from crazyflow_ros.ros.cdr import XYZ, XYZW, SerialisedMessages, below
from crazyflow_ros.ros.topics import StateTopics
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import world_to_body

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator


class OdometryTopics(StateTopics):
    """Pose in the odom frame, twist in the axes of the drone. Exact, so covariances are zero."""

    def __init__(self, simulator: Simulator) -> None:
        prototypes = []
        for drone in simulator.drones:
            message = Odometry(child_frame_id=frame_ids.base_link(drone))
            message.header.frame_id = frame_ids.odom(drone)
            prototypes.append(message)
        pose = below("pose.pose.position", XYZ) + below("pose.pose.orientation", XYZW)
        twist = below("twist.twist.linear", XYZ) + below("twist.twist.angular", XYZ)
        messages = SerialisedMessages(prototypes, ["header.stamp"], pose + twist)
        topics = [f"{drone}/odom" for drone in simulator.drones]
        super().__init__(simulator, "odom", Odometry, topics, messages)

    def numbers(self, snapshot: Snapshot) -> np.ndarray:
        """Velocities are known in world axes, angular velocities in body axes."""
        vel = world_to_body(snapshot.quat, snapshot.vel)
        return np.concatenate((snapshot.pos, snapshot.quat, vel, snapshot.ang_vel), axis=1)


class PoseTopics(StateTopics):
    """Pose in the map frame."""

    def __init__(self, simulator: Simulator) -> None:
        prototype = PoseStamped()
        prototype.header.frame_id = frame_ids.MAP
        pose = below("pose.position", XYZ) + below("pose.orientation", XYZW)
        messages = SerialisedMessages([prototype] * len(simulator.drones), ["header.stamp"], pose)
        topics = [f"{drone}/pose" for drone in simulator.drones]
        super().__init__(simulator, "pose", PoseStamped, topics, messages)

    def numbers(self, snapshot: Snapshot) -> np.ndarray:
        """As they are in the snapshot."""
        return np.concatenate((snapshot.pos, snapshot.quat), axis=1)


def declare(simulator: Simulator) -> None:
    """Add the topics."""
    OdometryTopics(simulator)
    PoseTopics(simulator)
