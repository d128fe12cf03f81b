"""The connection between a Crazyflie's firmware and its drone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.telemetry import Cell
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.flight.plan import Advice
from crazyflow_ros.runtime import PhysicsThread
from crazyflow_ros.runtime.drone_commands import Response
from crazyflow_ros.scene.frames import yaw

CFLIB_ADVICE = Advice(
    crashed="recover it (cf.supervisor.send_crash_recovery_request)",
    locked="switch it off and on (cflib.utils.power_switch.PowerSwitch)",
    empty="charge it (PowerSwitch: platform_power_down, stm_power_up)",
    call="recover it: cf.supervisor.send_crash_recovery_request()",
    disarmed="arm it (cf.supervisor.send_arming_request)",
    streaming="end the stream (cf.commander.send_notify_setpoint_stop)",
)
"""Advice that applies without ROS."""


@dataclass(frozen=True)
class Pilot:
    """Commands the drone of a given name in a simulation."""

    physics: PhysicsThread
    name: str
    set_controller: Callable[[Controller], None]
    """Switches the controller, together with those of all drones of the simulation."""

    def command(self, setpoint: Setpoint) -> None:
        """Command the drone from the next tick on; a later setpoint replaces it."""
        self.physics.command(self.name, setpoint)

    @property
    def estimates(self) -> bool:
        """Whether the drone flies on an estimate of its state."""
        return self.physics.snapshot.believed is not None

    @property
    def voltage(self) -> float:
        """Battery voltage [V]; that of a full battery if the drone was removed."""
        snapshot = self.physics.snapshot
        if snapshot.battery is None or self.name not in snapshot.names:
            return Cell.of(self.physics.config.drone_model).full
        return float(snapshot.battery[snapshot.names.index(self.name), 0])

    def place(self) -> list[float]:
        """Return where the drone is: position [m] and yaw [rad]."""
        snapshot = self.physics.snapshot
        row = snapshot.names.index(self.name)
        return [*snapshot.pos[row].tolist(), float(yaw(snapshot.quat[row]))]

    def ask(self, setpoint: Setpoint) -> Future[Response]:
        """Command the drone; the result says whether it refused."""
        return self.physics.fly({self.name: setpoint})
