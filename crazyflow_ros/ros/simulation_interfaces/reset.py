"""~/reset_simulation."""

from __future__ import annotations

from simulation_interfaces.msg import Result
from simulation_interfaces.srv import ResetSimulation

from crazyflow_ros.ros.simulation_interfaces.server import Refusal, Server


def declare(server: Server) -> None:
    """Add the service."""

    async def reset(request: ResetSimulation.Request, response: ResetSimulation.Response) -> None:
        if request.scope != request.SCOPE_STATE:
            text = f"only SCOPE_STATE ({request.SCOPE_STATE}) can be reset, got {request.scope}"
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, text)
        await server.wait(server.physics.reset())

    server.serve(ResetSimulation, reset, "SIMULATION_RESET", "SIMULATION_RESET_STATE")
