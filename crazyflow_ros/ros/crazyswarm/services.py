"""The flight services of crazyswarm2's server, and reboot; all/emergency is the last one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crazyflie_interfaces.srv import GoTo
from std_srvs.srv import Empty

from crazyflow_ros.ros.commands.flight_services import ALL, Conversion, FlightServices

if TYPE_CHECKING:
    from crazyflow_ros.ros.crazyswarm.crazyflies import Crazyflies


class CrazyswarmServices(FlightServices):
    """all/go_to is always relative: commands to all Crazyflies have no flag for it."""

    def __init__(self, crazyflies: Crazyflies) -> None:
        self._traffic = crazyflies.traffic
        super().__init__(crazyflies.host)

    def _add(self, owner: str) -> None:
        self._simulator.create_service(Empty, f"{owner}/reboot", partial(self._reboot, owner))
        super()._add(owner)

    async def _reboot(self, owner: str, _: Empty.Request, response: Empty.Response) -> Any:
        """Restart the firmware of a drone, or of all, where they are."""
        drones = self._physics.snapshot.names if owner == ALL else [owner]
        for restarted in [self._physics.firmware.restart(drone) for drone in drones]:
            await self._waiting.result(restarted)
        return response

    async def _command(
        self, owner: str, conversion: Conversion, request: Any, response: Any
    ) -> Any:
        self._traffic.count(owner)
        return await super()._command(owner, conversion, request, response)

    def _check_go_to_of_all(self, request: GoTo.Request) -> None:
        request.relative = True


def declare(crazyflies: Crazyflies) -> None:
    """Create the services and ~/flight_events."""
    CrazyswarmServices(crazyflies)
