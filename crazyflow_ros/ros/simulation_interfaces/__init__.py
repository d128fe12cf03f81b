"""Services of the standard package simulation_interfaces, versions 1.x and 2.x.

They are named after their types: ~/get_simulator_features, ~/get_entities ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation_interfaces.srv import GetSimulatorFeatures

from crazyflow_ros.ros.simulation_interfaces.entities import Entities, EntityStates
from crazyflow_ros.ros.simulation_interfaces.named_poses import NamedPoses
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.ros.simulation_interfaces.simulation_state import Reset, States
from crazyflow_ros.ros.simulation_interfaces.spawning import Spawning
from crazyflow_ros.ros.simulation_interfaces.step_services import StepServices
from crazyflow_ros.ros.simulation_interfaces.world_services import WorldLoading, WorldServices

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


def declare(simulator: Host) -> Server:
    """Create the services, group by group."""
    server = Server(simulator)
    for group in (
        *(WorldServices, WorldLoading, States, StepServices, Reset),
        *(Entities, EntityStates, Spawning, NamedPoses),
    ):
        group(server)
    server.serve(GetSimulatorFeatures, server.get_features)  # to which the others have added theirs
    return server
