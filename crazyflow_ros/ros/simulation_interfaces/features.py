"""~/get_simulator_features."""

from __future__ import annotations

from simulation_interfaces.srv import GetSimulatorFeatures

from crazyflow_ros.ros.simulation_interfaces.server import Server


def declare(server: Server) -> None:
    """Create the service, after all others have added their features."""

    def get(
        _request: GetSimulatorFeatures.Request, response: GetSimulatorFeatures.Response
    ) -> None:
        response.features.features = sorted(server.features)
        response.features.spawn_formats = server.spawn_formats
        response.features.custom_info = "crazyflow_ros, docs/simulation_interfaces.md"

    server.serve(GetSimulatorFeatures, get)
