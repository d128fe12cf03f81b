"""<drone>/odom and <drone>/pose: poses and twists of the drones.

Poses are in the odom frame and in the map frame; the odometry has no drift, so these frames are
the same, and both topics and TF agree. Twists are in the axes of the drone. All values are exact,
so covariances are zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from std_msgs.msg import Header

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below
from crazyflow_ros.ros.topics.state_topics import StateTopics

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    StateTopics(
        simulator,
        "odom",
        {
            f"{drone}/odom": Odometry(
                header=Header(frame_id=frame_ids.odom(drone)),
                child_frame_id=frame_ids.base_link(drone),
            )
            for drone in simulator.drones
        },
        lambda snapshot: (snapshot.pos, snapshot.quat, snapshot.body_vel, snapshot.ang_vel),
        [
            below("pose.pose.position", XYZ),
            below("pose.pose.orientation", XYZW),
            below("twist.twist.linear", XYZ),
            below("twist.twist.angular", XYZ),
        ],
    )
    StateTopics(
        simulator,
        "pose",
        {
            f"{drone}/pose": PoseStamped(header=Header(frame_id=frame_ids.MAP))
            for drone in simulator.drones
        },
        lambda snapshot: (snapshot.pos, snapshot.quat),
        [below("pose.position", XYZ), below("pose.orientation", XYZW)],
    )
