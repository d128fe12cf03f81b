"""<drone>/odom and <drone>/pose: where the drones are.

The odometry has no drift: the odom frame is the map frame, so both topics and TF agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below, layout
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


class OdometryTopics(StateTopics):
    """Pose in the odom frame, twist in the axes of the drone. Exact, so covariances are zero."""

    def __init__(self, simulator: SimulatorNode) -> None:
        prototypes = []
        for drone in simulator.drones:
            message = Odometry(child_frame_id=frame_ids.base_link(drone))
            message.header.frame_id = frame_ids.odom(drone)
            prototypes.append(message)
        numbers = [
            below("pose.pose.position", XYZ),
            below("pose.pose.orientation", XYZW),
            below("twist.twist.linear", XYZ),
            below("twist.twist.angular", XYZ),
        ]
        messages = layout(prototypes, ["header.stamp"], numbers)
        topics = [f"{drone}/odom" for drone in simulator.drones]
        super().__init__(simulator, "odom", Odometry, topics, messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """As they are in the snapshot."""
        return snapshot.pos, snapshot.quat, snapshot.body_vel, snapshot.ang_vel


class PoseTopics(StateTopics):
    """Pose in the map frame."""

    def __init__(self, simulator: SimulatorNode) -> None:
        prototype = PoseStamped()
        prototype.header.frame_id = frame_ids.MAP
        numbers = [below("pose.position", XYZ), below("pose.orientation", XYZW)]
        messages = layout([prototype] * len(simulator.drones), ["header.stamp"], numbers)
        topics = [f"{drone}/pose" for drone in simulator.drones]
        super().__init__(simulator, "pose", PoseStamped, topics, messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """As they are in the snapshot."""
        return snapshot.pos, snapshot.quat


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    OdometryTopics(simulator)
    PoseTopics(simulator)
