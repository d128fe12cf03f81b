"""Services of the standard package simulation_interfaces, versions 1.x and 2.x.

They are named after their types: ~/get_simulator_features, ~/get_entities ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from crazyflow_ros.ros.simulation_interfaces.server import Server

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

_GROUPS = (
    "worlds",
    "world_loading",
    "states",
    "stepping",
    "reset",
    "entities",
    "entity_states",
    "spawning",
    "named_poses",
    "features",  # lists the features of the others
)


def declare(simulator: SimulatorNode) -> None:
    """Create the services, module by module."""
    simulator.world = server = Server(simulator)
    for name in _GROUPS:
        import_module(f"{__name__}.{name}").declare(server)
