"""Drones as URDF: <drone>/robot_description for RViz and robot_state_publisher.

With ros2_control, ~/robot_description is that of all drones and their hardware, for one controller
manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_msgs.msg import String

from crazyflow_ros.hardware.description import urdf
from crazyflow_ros.hardware.ros2_control import Hardware
from crazyflow_ros.ros.topics import LATCHED_QOS

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator


# Stands for the name of a drone, none of which has two underscores in a row.
_NAME = "__name__"


def declare(simulator: Simulator) -> None:
    """Add the topics, and publish once for all who come."""
    if simulator.link is not None:
        parameters = {"shared_memory": simulator.link.name}
        text = urdf(simulator.parameters.drone_model, simulator.drones, Hardware.native, parameters)
        publisher = simulator.create_publisher(String, "~/robot_description", LATCHED_QOS)
        publisher.publish(String(data=text))
    description = urdf(simulator.parameters.drone_model, _NAME)  # takes several milliseconds
    for drone in simulator.drones:
        publisher = simulator.create_publisher(String, f"{drone}/robot_description", LATCHED_QOS)
        publisher.publish(String(data=description.replace(_NAME, drone)))
