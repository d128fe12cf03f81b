"""<drone>/attach and <drone>/detach: magnets, grippers and cables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from crazyflow_ros_interfaces.srv import Attach
from std_srvs.srv import Trigger

from crazyflow_ros.ros.messages.geometry import xyz
from crazyflow_ros.ros.service_answers import LOADING_TIMEOUT

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class HoldingServices:
    """Services that let a drone hold a body of the world or another drone, and let go of it."""

    def __init__(self, simulator: Host) -> None:
        self._simulator, self._world = simulator, simulator.physics.world
        simulator.for_each_drone(self._add_drone)

    def _add_drone(self, drone: str) -> None:
        create = self._simulator.create_service
        create(Attach, f"{drone}/attach", partial(self._attach, drone))
        create(Trigger, f"{drone}/detach", partial(self._detach, drone))

    async def _attach(self, drone: str, request: Attach.Request, _: Attach.Response) -> str:
        how = {"reach": request.reach} if request.reach else {}
        attached = self._world.attach(
            drone,
            request.body,
            **how,
            cable=request.cable,
            length=request.length,
            stiffness=request.stiffness,
            damping=request.damping,
            drone_point=tuple(xyz(request.drone_point)),
            body_point=tuple(xyz(request.body_point)),
        )
        snapshot = await self._simulator.waiting.result(attached, LOADING_TIMEOUT)
        held = self._world.held.get(drone)
        what = held.name if held else request.body
        by = f" by a cable of {held.length:.3g} m" if held and held.cable else ""
        return f"{drone} holds {what}{by}, from tick {snapshot.tick} on"

    async def _detach(self, drone: str, _: Trigger.Request, _response: Trigger.Response) -> str:
        held = self._world.held.get(drone)
        detached = self._world.detach(drone)
        snapshot = await self._simulator.waiting.result(detached, LOADING_TIMEOUT)
        return f"{drone} has let go of {held.name if held else 'it'}, from tick {snapshot.tick} on"
