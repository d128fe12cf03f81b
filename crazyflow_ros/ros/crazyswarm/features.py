"""The features of the node `crazyflie_server`, see `crazyflow_ros.ros.features`."""

from __future__ import annotations

from functools import partial

from crazyflow_ros.ros import crazyflie_link
from crazyflow_ros.ros.crazyswarm import (
    command_topics,
    firmware,
    log_topics,
    radio_statistics,
    robot_description,
    services,
)
from crazyflow_ros.ros.crazyswarm.configuration import SwarmConfiguration
from crazyflow_ros.ros.crazyswarm.crazyflies import Crazyflies
from crazyflow_ros.ros.equipment import Equipment
from crazyflow_ros.ros.external_features import add_external_features
from crazyflow_ros.ros.features import add_control, add_reports
from crazyflow_ros.ros.host import Host
from crazyflow_ros.ros.message_packages import if_installed, is_on
from crazyflow_ros.ros.topics import clock, display, states
from crazyflow_ros.ros.topics.state_topics import StateTopics

with if_installed("transforms"):
    from crazyflow_ros.ros.crazyswarm import transforms
with if_installed("motion_capture"):
    from crazyflow_ros.ros.crazyswarm import motion_capture


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
    crazyflies = Crazyflies(host, swarm)
    if external_poses and is_on("motion_capture", host.log):
        motion_capture.ExternalPoses(crazyflies)
    clock.declare(host)
    topics = StateTopics(host)
    if is_on("transforms", host.log):
        host.for_all_drones(partial(transforms.declare, crazyflies, topics, equipment.sensors))
    states.declare(host, topics)
    display.declare(host)
    robot_description.declare(host)
    add_reports(host, equipment)
    command_topics.declare(crazyflies, equipment.record_command)
    crazyflie_link.declare(host, crazyflies.fleet)
    add_control(host, equipment)
    add_external_features(host)
    firmware.declare(crazyflies)
    log_topics.declare(crazyflies)
    radio_statistics.declare(crazyflies)
    # all/emergency comes last: clients take it as the sign that the server is ready.
    services.declare(crazyflies)
