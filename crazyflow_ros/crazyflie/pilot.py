"""The connection between a Crazyflie's firmware and its drone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass

from numpy.typing import ArrayLike

from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.beacon_variables import silence
from crazyflow_ros.crazyflie.telemetry import Cell
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.flight.plan import Advice
from crazyflow_ros.runtime import PhysicsThread, Snapshot
from crazyflow_ros.runtime.requests import Response
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
    def sources(self) -> Positioning:
        """What the estimator of the drone measures; nothing without one."""
        if not self.estimates:
            return Positioning(flow=False, range=False)
        return self.physics.config.positioning

    @property
    def beacons(self) -> Collection[str]:
        """Names of what the estimator knows of beacons, see `estimation.beacons.columns`."""
        if not (self.sources.stations or self.sources.anchors):
            return ()
        from crazyflow_ros.estimation.beacons import columns  # with JAX

        return columns(self.sources).keys()

    def restart_estimate(self, initial: ArrayLike, report: Callable[[str], None]) -> None:
        """Let the estimator start again; `report` takes why it will not find its place.

        Args:
            initial: (4,) position [m] and yaw [rad] at which it starts.
            report: Takes a text.
        """
        self.physics.firmware.restart_estimate(self.name, initial)
        snapshot, sources = self.physics.snapshot, self.sources
        own = snapshot.heard
        heard = None if own is None else own[snapshot.names.index(self.name)]
        if why := silence(sources, heard):
            report(f"the estimate starts again, but does not find its place: {why}")

    def tell_beacons(self, report: Callable[[str], None], column: str, values: ArrayLike) -> None:
        """Tell the estimator what it has to know of beacons; `report` takes why it does not."""

        def told(future: Future[Snapshot]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                report(str(error))

        self.physics.firmware.set_beacons(self.name, column, values).add_done_callback(told)

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
