"""Drones as URDF: <drone>/robot_description for RViz and robot_state_publisher.

With ros2_control they include the hardware: <drone>/robot_description is for a controller manager
in the drone's namespace, ~/robot_description, of all drones, for one that has all.
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
    model, hardware, parameters = simulator.parameters.drone_model, Hardware.none, {}
    if simulator.link is not None:
        hardware, parameters = Hardware.native, {"shared_memory": simulator.link.name}
        text = urdf(model, simulator.drones, hardware, parameters)
        publisher = simulator.create_publisher(String, "~/robot_description", LATCHED_QOS)
        publisher.publish(String(data=text))
    description = urdf(model, _NAME, hardware, parameters)  # takes several milliseconds
    for drone in simulator.drones:
        publisher = simulator.create_publisher(String, f"{drone}/robot_description", LATCHED_QOS)
        publisher.publish(String(data=description.replace(_NAME, drone)))
