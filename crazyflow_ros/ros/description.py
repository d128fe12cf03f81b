"""<drone>/robot_description: the drone as URDF, for RViz and robot_state_publisher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_msgs.msg import String

from crazyflow_ros.hardware.description import urdf
from crazyflow_ros.ros.topics import LATCHED_QOS

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator


def declare(simulator: Simulator) -> None:
    """Add the topics, and publish once for all who come."""
    for drone in simulator.drones:
        publisher = simulator.create_publisher(String, f"{drone}/robot_description", LATCHED_QOS)
        publisher.publish(String(data=urdf(simulator.parameters.drone_model, drone)))
