"""The features of the node `crazyflie_server`, see `crazyflow_ros.ros.features`."""

from __future__ import annotations

from crazyflow_ros.crazyswarm.crazyflies import ConnectionStatisticsTopics, Crazyflies
from crazyflow_ros.crazyswarm.crazyswarm_commands import CrazyswarmServices, CrazyswarmTopics
from crazyflow_ros.crazyswarm.drone_parameters import FirmwareParameters
from crazyflow_ros.crazyswarm.link import CrazyflieLink
from crazyflow_ros.crazyswarm.log_topics import LogTopics
from crazyflow_ros.crazyswarm.swarm_configuration import SwarmConfiguration
from crazyflow_ros.crazyswarm.tree import ROBOT_DESCRIPTION
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.ros.equipment import Equipment
from crazyflow_ros.ros.extensions import add_external_features
from crazyflow_ros.ros.features import add_control, add_reports
from crazyflow_ros.ros.host import Host
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.optional_features import if_installed, is_on
from crazyflow_ros.ros.robot_description import NAME, describe_each
from crazyflow_ros.ros.topics import drone_states
from crazyflow_ros.ros.topics.clock import ClockTopic
from crazyflow_ros.ros.topics.state_topics import StateTopics

with if_installed("transforms"):
    from crazyflow_ros.ros.topics.tf import Edge, add_moving, publish_static
with if_installed("motion_capture"):
    from crazyflow_ros.crazyswarm.mocap_poses import ExternalPoses


def add_features(
    swarm: SwarmConfiguration, external_poses: bool, host: Host, equipment: Equipment
) -> None:
    """Add all features of the node.

    Args:
        swarm: The robots and their settings.
        external_poses: Whether another node publishes /poses.
        host: The node.
        equipment: What exists already.
    """
    (link,) = (found for found in equipment.extensions if isinstance(found, CrazyflieLink))
    crazyflies = Crazyflies(host, swarm, link.new_fleet(host))
    if external_poses and is_on("motion_capture", host.log):
        ExternalPoses(crazyflies)
    ClockTopic(host)
    topics = StateTopics(host)
    if is_on("transforms", host.log):
        host.for_all_drones(lambda: _add_transforms(crazyflies, topics, equipment))
    drone_states.declare(host, topics)
    _describe_robots(host)
    add_reports(host, equipment)
    CrazyswarmTopics(crazyflies, equipment.record_command)
    for extension in equipment.extensions:
        if extension is not link:
            extension.add(host)
        elif link.port:
            link.serve(host, crazyflies.fleet)
    add_control(host, equipment)
    add_external_features(host)
    FirmwareParameters(crazyflies)
    LogTopics(crazyflies)
    if period := swarm.statistics_period:
        ConnectionStatisticsTopics(crazyflies, period)
    # all/emergency comes last: clients take it as the sign that the server is ready.
    CrazyswarmServices(crazyflies)


def _add_transforms(crazyflies: Crazyflies, topics: StateTopics, equipment: Equipment) -> None:
    """Add /tf, reference frame -> <drone>, and /tf_static, <drone> -> base_link -> its sensors."""
    simulator, settings = crazyflies.host, crazyflies.swarm.settings
    # The motion capture that sees real drones broadcasts frames with their names itself.
    frames = {d: d if simulator.owns(d) else f"{d}/seen" for d in simulator.drones}
    add_moving(topics, [Edge(settings(d).reference_frame, at) for d, at in frames.items()])
    links = [Edge(at, frame_ids.base_link(drone)) for drone, at in frames.items()]
    publish_static(simulator, links, equipment.sensors)


def _describe_robots(host: Host) -> None:
    """Publish the parameter `robot_description`, or the URDF of each drone."""
    if not host.node.has_parameter(ROBOT_DESCRIPTION):
        host.node.declare_parameter(ROBOT_DESCRIPTION, "")
    given: str = host.get_parameter(ROBOT_DESCRIPTION).value
    name = "$NAME" if given else NAME  # the former is that of crazyswarm2's descriptions
    text = given or urdf(host.parameters.drone_model, NAME)
    describe_each(host, lambda _: text, name)
