"""The standard interface of simulators (package simulation_interfaces), in versions 1.x and 2.x.

Services of the node, named after their types: ~/get_simulator_features, ~/get_entities ...
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
    "features",  # which tells what the others bring
)


def declare(simulator: SimulatorNode) -> None:
    """Add the services, one module after the other."""
    server = Server(simulator)
    for name in _GROUPS:
        import_module(f"{__name__}.{name}").declare(server)
