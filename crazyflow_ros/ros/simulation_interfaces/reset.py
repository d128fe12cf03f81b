"""~/reset_simulation."""

from __future__ import annotations

from simulation_interfaces.msg import Result
from simulation_interfaces.srv import ResetSimulation

from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.runtime import ResetScope

_Request = ResetSimulation.Request
_EVERYTHING = (_Request.SCOPE_DEFAULT, _Request.SCOPE_ALL)


class Reset:
    """Service that resets the whole simulation or parts of it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._scopes = {
            _Request.SCOPE_STATE: ResetScope.state,
            _Request.SCOPE_SPAWNED: ResetScope.spawned,
        }
        server.serve(ResetSimulation, self._reset, "SIMULATION_RESET", "SIMULATION_RESET_STATE")
        server.supports("SIMULATION_RESET_SPAWNED")
        if server.resets_time:
            self._scopes[_Request.SCOPE_TIME] = ResetScope.time
            server.supports("SIMULATION_RESET_TIME")

    async def _reset(
        self, request: ResetSimulation.Request, _response: ResetSimulation.Response
    ) -> None:
        self._server.need_world()
        if request.scope in _EVERYTHING:
            await self._server.reset_all()
            return
        rest, scope = request.scope, ResetScope(0)
        for bit, part in self._scopes.items():
            if rest & bit:
                rest, scope = rest & ~bit, scope | part
        if rest:
            expected = f"expected bits {sorted(self._scopes)} or {_EVERYTHING}"
            text = f"scope: {expected}, got {request.scope}"
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, text)
        await self._server.reset(scope)


def declare(server: Server) -> None:
    """Create the service."""
    Reset(server)
