"""/tf: reference frame -> <drone>, and /tf_static: <drone> -> <drone>/base_link -> its sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.topics.tf import Edge, add_moving, publish_static

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.server import CrazyswarmServer


def declare(simulator: CrazyswarmServer) -> None:
    """Add both topics."""
    drones, settings = simulator.drones, simulator.swarm.settings
    add_moving(simulator, [Edge(settings(drone).reference_frame, drone) for drone in drones])
    publish_static(simulator, [Edge(drone, frame_ids.base_link(drone)) for drone in drones])
