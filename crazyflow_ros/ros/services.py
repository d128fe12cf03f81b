"""~/pause, ~/step, ~/reset and <drone>/reset."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.runtime import InvalidState, Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_TIMEOUT = 10.0  # s of wall time; requests are carried out within one period of the topics
_SLOWEST_TICK = 0.01  # s of wall time


class Services:
    """Requests to the physics thread, each answered when it has been carried out."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._physics = simulator.physics
        group = simulator.waiting.group
        simulator.create_service(SetBool, "~/pause", self._pause, callback_group=group)
        simulator.create_service(Trigger, "~/step", self._step, callback_group=group)
        simulator.create_service(Trigger, "~/reset", self._reset, callback_group=group)
        simulator.for_each_drone(self._add_drone)

    def _add_drone(self, drone: str) -> None:
        reset, group = partial(self._reset_drone, drone), self._simulator.waiting.group
        self._simulator.create_service(Trigger, f"{drone}/reset", reset, callback_group=group)

    async def _pause(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        already = self._physics.paused == request.data
        future = self._physics.pause() if request.data else self._physics.resume()
        state = "paused" if request.data else "running"
        return await self._answer(response, future, f"already {state}" if already else state)

    async def _step(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        ticks = self._simulator.get_parameter("step_ticks").value
        ticks = ticks or self._physics.control_period
        timeout = _TIMEOUT + ticks * _SLOWEST_TICK
        steps = self._physics.step(ticks)
        return await self._answer(response, steps, f"{ticks} ticks done", timeout)

    async def _reset(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        return await self._answer(response, self._physics.reset(), "all drones reset")

    async def _reset_drone(
        self, drone: str, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        future = self._physics.reset(drones=[drone])
        return await self._answer(response, future, f"{drone} reset")

    async def _answer(
        self,
        response: SetBool.Response | Trigger.Response,
        future: Future[Snapshot],
        done: str,
        timeout: float = _TIMEOUT,
    ) -> SetBool.Response | Trigger.Response:
        try:
            snapshot = await self._simulator.waiting.result(future, timeout)
            response.success = True
            response.message = f"{done}, at tick {snapshot.tick} ({snapshot.time_ns * 1e-9:.3f} s)"
        except (InvalidState, ValueError) as error:
            response.message = str(error)
        except TimeoutError:
            response.message = f"not done within {timeout:.0f} s"
        return response


def declare(simulator: Simulator) -> None:
    """Add the services."""
    Services(simulator)
