"""~/get_entity_state and ~/set_entity_state."""

from __future__ import annotations

from simulation_interfaces.srv import GetEntityState

from crazyflow_ros.ros.simulation_interfaces.entities import named
from crazyflow_ros.ros.simulation_interfaces.motion import message_of
from crazyflow_ros.ros.simulation_interfaces.server import Server


def declare(server: Server) -> None:
    """Add the services."""

    def get(request: GetEntityState.Request, response: GetEntityState.Response) -> None:
        response.state = message_of(named(server, request.entity))

    server.serve(GetEntityState, get, "ENTITY_STATE_GETTING")
