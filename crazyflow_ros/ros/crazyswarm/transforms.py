"""/tf: reference frame -> <drone>, and /tf_static: <drone> -> <drone>/base_link -> its sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.sensors.devices import SensorFile
from crazyflow_ros.ros.topics.state_topics import StateTopics
from crazyflow_ros.ros.topics.tf import Edge, add_moving, publish_static

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.crazyflies import Crazyflies


def declare(crazyflies: Crazyflies, topics: StateTopics, sensors: SensorFile) -> None:
    """Add both topics."""
    simulator, settings = crazyflies.host, crazyflies.swarm.settings
    drones = simulator.drones
    add_moving(topics, [Edge(settings(drone).reference_frame, drone) for drone in drones])
    publish_static(
        simulator, [Edge(drone, frame_ids.base_link(drone)) for drone in drones], sensors
    )
