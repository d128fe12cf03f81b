"""<drone>/robot_description: the parameter `robot_description`, or the URDF of the drone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.ros.crazyswarm.tree import ROBOT_DESCRIPTION
from crazyflow_ros.ros.robot_description import NAME, describe_each

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


def declare(simulator: Host) -> None:
    """Add the latched topics and publish them."""
    if not simulator.node.has_parameter(ROBOT_DESCRIPTION):
        simulator.node.declare_parameter(ROBOT_DESCRIPTION, "")
    given: str = simulator.get_parameter(ROBOT_DESCRIPTION).value
    if given:
        describe_each(simulator, lambda _: given, "$NAME")  # as in crazyswarm2's descriptions
    else:
        description = urdf(simulator.parameters.drone_model, NAME)
        describe_each(simulator, lambda _: description, NAME)
