"""Services of the standard package simulation_interfaces, versions 1.x and 2.x.

They are named after their types: ~/get_simulator_features, ~/get_entities ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.ros.simulation_interfaces import (
    entities,
    entity_states,
    features,
    named_poses,
    reset,
    spawning,
    states,
    stepping,
    world_loading,
    worlds,
)
from crazyflow_ros.ros.simulation_interfaces.server import Server

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_GROUPS = (
    worlds,
    world_loading,
    states,
    stepping,
    reset,
    entities,
    entity_states,
    spawning,
    named_poses,
    features,  # lists the features of the others
)


def declare(simulator: Host) -> Server:
    """Create the services, group by group."""
    server = Server(simulator)
    for group in _GROUPS:
        group.declare(server)
    return server
