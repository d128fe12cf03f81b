"""<drone>/set_motor_efficiency and <drone>/set_battery: failing motors and empty batteries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from crazyflow_ros_interfaces.srv import SetBattery, SetMotorEfficiency

from crazyflow_ros.runtime import BatteryCharge, MotorEfficiency

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class DisturbanceServices:
    """Services that take effect at the next tick and last until a reset of the drone."""

    def __init__(self, simulator: Host) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        simulator.for_each_drone(self._add_drone)

    def _add_drone(self, drone: str) -> None:
        create = self._simulator.create_service
        set_motor, set_battery = partial(self._set_motor, drone), partial(self._set_battery, drone)
        create(SetMotorEfficiency, f"{drone}/set_motor_efficiency", set_motor)
        create(SetBattery, f"{drone}/set_battery", set_battery)

    async def _set_motor(
        self, drone: str, request: SetMotorEfficiency.Request, _: SetMotorEfficiency.Response
    ) -> str:
        change = MotorEfficiency(drone, request.motor, request.efficiency)
        snapshot = await self._simulator.waiting.result(self._physics.world.disturb(change))
        now = f"motor {change.motor} of {drone} has an efficiency of {change.efficiency:g}"
        return f"{now}, from tick {snapshot.tick} on"

    async def _set_battery(
        self, drone: str, request: SetBattery.Request, _: SetBattery.Response
    ) -> str:
        change = BatteryCharge(drone, request.charge)
        snapshot = await self._simulator.waiting.result(self._physics.world.disturb(change))
        return f"the battery of {drone} is at {change.charge:.0%}, from tick {snapshot.tick} on"
