"""<drone>/robot_description: the parameter `robot_description`, or the URDF of the drone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_msgs.msg import String

from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.ros.crazyswarm.tree import ROBOT_DESCRIPTION
from crazyflow_ros.ros.topics.state_topics import LATCHED_QOS

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.server import CrazyflieServer

_NAME = "$NAME"  # as in crazyswarm2's descriptions


def declare(simulator: CrazyflieServer) -> None:
    """Add the latched topics and publish them."""
    if not simulator.has_parameter(ROBOT_DESCRIPTION):
        simulator.declare_parameter(ROBOT_DESCRIPTION, "")
    given: str = simulator.get_parameter(ROBOT_DESCRIPTION).value
    own = "" if given else urdf(simulator.parameters.drone_model, "__name__")
    description = given or own.replace("__name__", _NAME)

    def add(drone: str) -> None:
        publisher = simulator.create_publisher(String, f"{drone}/robot_description", LATCHED_QOS)
        publisher.publish(String(data=description.replace(_NAME, drone)))

    simulator.for_each_drone(add)
