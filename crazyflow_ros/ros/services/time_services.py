"""~/pause, ~/step, ~/reset and <drone>/reset."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.ros.service_answers import SLOWEST_TICK, TIMEOUT
from crazyflow_ros.runtime import Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class TimeControlServices:
    """Services that respond once the physics thread has carried out the request."""

    def __init__(self, simulator: Host) -> None:
        self._simulator, self._waiting = simulator, simulator.waiting
        self._physics = simulator.physics
        simulator.create_service(SetBool, "~/pause", self._pause)
        simulator.create_service(Trigger, "~/step", self._step)
        simulator.create_service(Trigger, "~/reset", self._reset)
        simulator.for_each_drone(self._add_drone)

    def _add_drone(self, drone: str) -> None:
        reset = partial(self._reset_drone, drone)
        self._simulator.create_service(Trigger, f"{drone}/reset", reset)

    async def _pause(self, request: SetBool.Request, _: SetBool.Response) -> str:
        switch = self._physics.switch(paused=request.data)
        changed, snapshot = await self._waiting.result(switch)
        state = "paused" if request.data else "running"
        return _at(state if changed else f"already {state}", snapshot)

    async def _step(self, _: Trigger.Request, _response: Trigger.Response) -> str:
        ticks = self._simulator.get_parameter("step_ticks").value or self._physics.control_period
        steps = self._physics.step(ticks)
        snapshot = await self._waiting.result(steps, TIMEOUT + ticks * SLOWEST_TICK)
        return _at(f"{ticks} ticks done", snapshot)

    async def _reset(self, _: Trigger.Request, _response: Trigger.Response) -> str:
        return _at("all drones reset", await self._waiting.result(self._physics.state.reset()))

    async def _reset_drone(
        self, drone: str, _: Trigger.Request, _response: Trigger.Response
    ) -> str:
        reset = self._physics.state.reset(drones=[drone])
        return _at(f"{drone} reset", await self._waiting.result(reset))


def _at(done: str, snapshot: Snapshot) -> str:
    return f"{done}, at tick {snapshot.tick} ({snapshot.time_ns * 1e-9:.3f} s)"
