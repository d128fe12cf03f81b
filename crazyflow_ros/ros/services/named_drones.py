"""~/drones/takeoff, land, arm, disarm, emergency, notify_setpoints_stop, reset and delete.

They take the names of the drones, and answer with the reason of a refusal. Single drones need no
services of their own for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from crazyflow_ros_interfaces.srv import ChangeHeight, CommandDrones

from crazyflow_ros import flight
from crazyflow_ros.checks import limits
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.ros.commands.swarm_commands import check_names, refusal
from crazyflow_ros.ros.service_answers import LOADING_TIMEOUT

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_SETPOINTS: Mapping[str, Callable[[], Setpoint]] = {
    "arm": lambda: flight.Arm(True),
    "disarm": lambda: flight.Arm(False),
    "emergency": flight.Emergency,
    "notify_setpoints_stop": flight.NotifySetpointsStop,
}
_HEIGHTS: Mapping[str, Callable[[float, float], Setpoint]] = {
    "takeoff": flight.Takeoff,
    "land": flight.Land,
}


class NamedDrones:
    """Services that respond once the physics thread has carried out the request."""

    def __init__(self, simulator: Host) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        for name, setpoint in _SETPOINTS.items():
            self._add(CommandDrones, name, partial(self._order, setpoint))
        for name, change in _HEIGHTS.items():
            self._add(ChangeHeight, name, partial(self._change_height, change))
        self._add(CommandDrones, "reset", self._reset)
        self._add(CommandDrones, "delete", self._delete)

    def _add(self, kind: type, name: str, callback: Callable[..., object]) -> None:
        self._simulator.create_service(kind, f"~/drones/{name}", callback)

    async def _order(
        self,
        setpoint: Callable[[], Setpoint],
        request: CommandDrones.Request,
        _: CommandDrones.Response,
    ) -> str:
        return await self._fly(request.drones, setpoint())

    async def _change_height(
        self,
        change: Callable[[float, float], Setpoint],
        request: ChangeHeight.Request,
        _: ChangeHeight.Response,
    ) -> str:
        duration = limits.number("duration", request.duration, limits.DURATION)
        return await self._fly(request.drones, change(request.height, duration))

    async def _fly(self, names: Sequence[str], setpoint: Setpoint) -> str:
        check_names("drones", names, self._physics.snapshot.names)
        flown = self._physics.fly(dict.fromkeys(names, setpoint))
        outcome = await self._simulator.waiting.result(flown)
        for note in outcome.notes:
            self._simulator.log.info(note)
        if outcome.refused:
            raise ValueError(refusal(outcome.refused, len(names)))
        return _done("commanded", names)

    async def _reset(self, request: CommandDrones.Request, _: CommandDrones.Response) -> str:
        check_names("drones", request.drones, self._physics.snapshot.names)
        reset = self._physics.state.reset(drones=list(request.drones))
        await self._simulator.waiting.result(reset)
        return _done("reset", request.drones)

    async def _delete(self, request: CommandDrones.Request, _: CommandDrones.Response) -> str:
        check_names("drones", request.drones, self._physics.snapshot.names)
        gone = self._physics.world.despawn(*request.drones)
        await self._simulator.waiting.result(gone, LOADING_TIMEOUT)
        self._simulator.follow_drones()
        return _done("deleted", request.drones)


def _done(what: str, names: Sequence[str]) -> str:
    return f"{names[0] if len(names) == 1 else f'{len(names)} drones'} {what}"
