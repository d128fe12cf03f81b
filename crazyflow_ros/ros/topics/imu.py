"""<drone>/imu: readings of the IMUs, without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sensor_msgs.msg import Imu

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.cdr import XYZ, XYZW, below, layout
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


class ImuTopics(StateTopics):
    """Specific force (+g upwards at rest), angular velocity, and attitude in the world (REP 145).

    Covariances of zero mean, as `sensor_msgs/Imu` says, that they are not known.
    """

    def __init__(self, simulator: SimulatorNode) -> None:
        prototypes = []
        for drone in simulator.drones:
            message = Imu()
            message.header.frame_id = frame_ids.imu_link(drone)
            prototypes.append(message)
        numbers = [
            below("orientation", XYZW),
            below("angular_velocity", XYZ),
            below("linear_acceleration", XYZ),
        ]
        messages = layout(prototypes, ["header.stamp"], numbers)
        topics = [f"{drone}/imu" for drone in simulator.drones]
        super().__init__(simulator, "imu", Imu, topics, messages)

    def numbers(self, snapshot: Snapshot) -> Sequence[np.ndarray]:
        """The IMU sits in the centre of mass."""
        return snapshot.quat, snapshot.ang_vel, snapshot.specific_force


def declare(simulator: SimulatorNode) -> None:
    """Add the topics."""
    ImuTopics(simulator)
