"""~/get_simulation_state and ~/set_simulation_state."""

from __future__ import annotations

from simulation_interfaces.msg import Result, SimulationState
from simulation_interfaces.srv import GetSimulationState, SetSimulationState

from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.runtime import InvalidState

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
            text = f"there is no state {target}, have {_NAMES}"
            raise Refusal(Result.RESULT_OPERATION_FAILED, text)
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


def declare(server: Server) -> None:
    """Create the services."""
    States(server)
