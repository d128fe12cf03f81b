"""~/get_simulation_state, ~/set_simulation_state and ~/reset_simulation."""

from __future__ import annotations

from simulation_interfaces.msg import Result, SimulationState
from simulation_interfaces.srv import GetSimulationState, ResetSimulation, SetSimulationState

from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.runtime import InvalidState, ResetScope

_NAMES = {
    SimulationState.STATE_STOPPED: "stopped",
    SimulationState.STATE_PLAYING: "playing",
    SimulationState.STATE_PAUSED: "paused",
    SimulationState.STATE_QUITTING: "quitting",
    SimulationState.STATE_NO_WORLD: "no world",
    SimulationState.STATE_LOADING_WORLD: "loading world",
}
_IN_A_WORLD = (
    SimulationState.STATE_STOPPED,
    SimulationState.STATE_PLAYING,
    SimulationState.STATE_PAUSED,
)
_Response = SetSimulationState.Response
_Request = ResetSimulation.Request
_EVERYTHING = (_Request.SCOPE_DEFAULT, _Request.SCOPE_ALL)


class States:
    """Services that read and set the state of the simulation.

    "Stopped" means paused at the start. Any later step, resume or reset, by any interface, ends
    that state.
    """

    def __init__(self, server: Server) -> None:
        self._server, self._physics = server, server.physics
        self._quitting = False
        server.serve(GetSimulationState, self._get, "SIMULATION_STATE_GETTING")
        server.serve(
            SetSimulationState, self._set, "SIMULATION_STATE_SETTING", "SIMULATION_STATE_PAUSE"
        )

    def current(self) -> int:
        """Return the present state, one of `SimulationState`."""
        if self._quitting:
            return SimulationState.STATE_QUITTING
        if self._server.loading:
            return SimulationState.STATE_LOADING_WORLD
        if self._server.world is None:
            return SimulationState.STATE_NO_WORLD
        if not self._physics.paused:
            return SimulationState.STATE_PLAYING
        if self._server.now() == self._server.stopped_at:
            return SimulationState.STATE_STOPPED
        return SimulationState.STATE_PAUSED

    def _quit(self) -> None:
        """End the process after the response, which the executor sends next."""
        simulator = self._server.simulator
        executor = simulator.node.executor
        assert executor is not None  # it is running this callback
        executor.create_task(executor.create_task, simulator.on_quit)

    def _get(
        self, _request: GetSimulationState.Request, response: GetSimulationState.Response
    ) -> None:
        response.state.state = self.current()

    async def _set(
        self, request: SetSimulationState.Request, _response: SetSimulationState.Response
    ) -> None:
        now, target = self.current(), request.state.state
        if target not in _NAMES:
            raise ValueError(f"there is no state {target}, have {_NAMES}")
        if target == SimulationState.STATE_PAUSED and now == target:
            await self._server.wait(self._physics.pause())  # ends pending steps
        if now == target:
            text = f"the simulation is already {_NAMES[now]}"
            raise Refusal(_Response.ALREADY_IN_TARGET_STATE, text)
        if target == SimulationState.STATE_QUITTING:
            await self._server.wait(self._physics.pause())
            self._quitting = True
            self._quit()
            return
        if now not in _IN_A_WORLD or target not in _IN_A_WORLD:
            how = "use load_world and unload_world"
            text = f"from {_NAMES[now]} to {_NAMES[target]}: " + (
                how if target not in _IN_A_WORLD else "not possible"
            )
            raise Refusal(_Response.INCORRECT_TRANSITION, text)
        try:
            await self._go_to(target)
        except (InvalidState, TimeoutError) as error:
            raise Refusal(_Response.STATE_TRANSITION_ERROR, str(error)) from error

    async def _go_to(self, target: int) -> None:
        if target == SimulationState.STATE_STOPPED:
            await self._server.stop()
            return
        playing = target == SimulationState.STATE_PLAYING
        await self._server.wait(self._physics.resume() if playing else self._physics.pause())
        self._server.stopped_at = (0, 0)  # a tick that never occurs


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
