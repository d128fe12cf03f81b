"""<drone>/imu: readings of the IMUs, without noise.

Specific force (+g upwards at rest), angular velocity, and attitude in the world (REP 145). Zero
covariances mean, as in `sensor_msgs/Imu`, that they are unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sensor_msgs.msg import Imu
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
        "imu",
        {
            f"{drone}/imu": Imu(header=Header(frame_id=frame_ids.imu_link(drone)))
            for drone in simulator.drones
        },
        lambda snapshot: (snapshot.quat, snapshot.ang_vel, snapshot.specific_force),
        [
            below("orientation", XYZW),
            below("angular_velocity", XYZ),
            below("linear_acceleration", XYZ),
        ],
    )
