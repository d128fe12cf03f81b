"""The door through which ArduPilot flies the drones: one ArduPilot for each, in lock-step.

Source of the interface: ArduPilot's `libraries/SITL/SIM_JSON.cpp`. It sends its outputs to a UDP
port, and waits for the readings, whose time is its clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import check
from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors.ardupilot.readings import RANGE_RATE, ArduPilotReadings
from crazyflow_ros.doors.ardupilot.vehicle import ArduPilotVehicle
from crazyflow_ros.doors.commands import Commands
from crazyflow_ros.doors.motors import QUAD_X, Motors
from crazyflow_ros.doors.patience import Patience
from crazyflow_ros.doors.settings import DoorContext
from crazyflow_ros.doors.sockets import DoorSockets
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.scene import Mirror

NAME = "ardupilot"
PORTS = 10
"""UDP ports from one instance of ArduPilot to the next."""
HEADING = 90
"""Degrees: drones face east at the start."""
_LAST_PORT = 65535
_LOOP_RATE = 400  # Hz, ArduPilot's default


@dataclass(frozen=True)
class ArduPilot:
    """Settings of the door: in the node, the parameters ardupilot.port and so on."""

    address: Annotated[str, Spec("Address of the network interface for ArduPilot")] = "127.0.0.1"
    port: Annotated[
        int,
        Spec(
            f"UDP port of the first drone's ArduPilot; each further one is {PORTS} higher",
            1024,
            _LAST_PORT,
        ),
    ] = 9002
    rate: Annotated[int, Spec("Frames of readings a second [Hz]; must divide freq", 50, 2000)] = 500
    timeout: Annotated[
        float, Spec("Wall time to wait for the answer to a frame [s]", 0.001, 3600)
    ] = 10.0
    latitude: Annotated[
        float, Spec("Latitude of the world's origin [degrees], that of --home", -90, 90)
    ] = 47.397742
    longitude: Annotated[float, Spec("Its longitude [degrees]", -180, 180)] = 8.545594
    altitude: Annotated[float, Spec("Its altitude above sea level [m]", -2000, 19_000)] = 488.0
    range_finder: Annotated[
        bool, Spec("The drones have range finders that look down, up to 4 m")
    ] = False

    def open(self, context: DoorContext) -> ArduPilotDoor:
        """Open the ports.

        Raises:
            ValueError: A setting is not usable.
            OSError: A port cannot be opened.
        """
        return ArduPilotDoor(self, context)

    @property
    def loop_rate(self) -> int:
        """ArduPilot's SCHED_LOOP_RATE: it does not arm if there are fewer than 1.8 frames each."""
        return min(_LOOP_RATE, self.rate // 2)

    @property
    def home(self) -> str:
        """ArduPilot's option --home."""
        return f"{self.latitude:.9g},{self.longitude:.9g},{self.altitude:.9g},{HEADING}"


class ArduPilotDoor:
    """Lets each drone's ArduPilot fly it; see `Door`.

    Time begins once every drone has an ArduPilot, and waits for their answers. A drone whose
    ArduPilot has ended stops its rotors, and a new ArduPilot may come at any time.

    The time of each ArduPilot is counted in frames from its first one on, and goes on through
    resets and through jumps of the simulated time.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable; the message names it.
        OSError: A port cannot be opened.
    """

    name = NAME

    def __init__(self, settings: ArduPilot, context: DoorContext) -> None:
        check(settings)
        drones, last = context.drones, settings.port + PORTS * (len(context.drones) - 1)
        if last > _LAST_PORT:
            raise ValueError(
                f"{NAME}.port: {len(drones)} drones need ports up to {last}, beyond {_LAST_PORT}"
            )
        self.period = ticks_per_period(context.freq, settings.rate, f"{NAME}.rate")
        self._settings, self._log, rate = settings, context.logger, settings.rate
        self._motors = Motors(context.drone_model, QUAD_X)
        every = max(1, round(rate / RANGE_RATE)) if settings.range_finder else 0
        self._readings = ArduPilotReadings(len(drones), every)
        self._commands = Commands(drones, OnLoss.stop, self._log)
        self._patience = Patience(NAME, 1 / rate, settings.timeout, self._log)
        self._frame, self._tick = 0, -1  # number and tick of the latest one
        self._entries: list[str] = []  # its, for each drone
        self._have_come = False
        self._sockets = DoorSockets()
        self._vehicles: list[ArduPilotVehicle] = []
        try:
            for i, drone in enumerate(drones):
                self._vehicles.append(self._vehicle(i, drone))
        except OSError:
            self.close()
            raise
        ports = f"port {settings.port}" + (f" to {last}" if last > settings.port else "")
        self._log.info(
            f"{NAME}: waits for {len(drones)} ArduPilot at {settings.address}, UDP {ports}, with "
            f"--home {settings.home} and a SCHED_LOOP_RATE of at most {settings.loop_rate}"
        )

    def _vehicle(self, i: int, drone: str) -> ArduPilotVehicle:
        return ArduPilotVehicle(
            drone,
            self._settings.address,
            self._settings.port + PORTS * i,
            self._settings.rate,
            self._sockets.selector,
            command=partial(self._command, i),
            refuse=partial(self._commands.refuse, i),
            lost=partial(self._commands.lose, i),
            logger=self._log,
        )

    def _command(self, drone: int, outputs: Sequence[float]) -> None:
        """Put the outputs of an ArduPilot into force."""
        try:
            self._commands.put(drone, Level.rotor_velocity, self._motors.speeds(outputs))
        except ValueError as error:
            self._commands.refuse(drone, f"command {shown(outputs)}", str(error))

    # In the physics thread.

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Send the frame of a new control tick to those that have asked for one."""
        if snapshot.tick % self.period or snapshot.tick == self._tick:
            return
        self._tick, self._frame = snapshot.tick, self._frame + 1
        self._entries = self._readings.take(snapshot, mirror, self._frame)
        self._patience.begin()
        self._sockets.serve()  # what was sent again while time stood still is no answer
        self._send()

    def _send(self) -> None:
        for vehicle, entries in zip(self._vehicles, self._entries):
            vehicle.send(entries, self._frame)

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """Wait for the answers to the frame."""
        del snapshot
        if not self._sockets.wait(self._left, interrupted):
            return False
        command[:], level[:] = self._commands.values, self._commands.level
        return True

    def _left(self) -> float:
        """Return how long to go on waiting [s], not positive if time may run on."""
        self._send()  # to those that have just come
        if not self._have_come:
            self._have_come = all(vehicle.is_connected for vehicle in self._vehicles)
            self._patience.begin()
            if not self._have_come:
                return math.inf
        late = [vehicle for vehicle in self._vehicles if vehicle.is_waited_for]
        if not late:
            if any(vehicle.is_connected for vehicle in self._vehicles):
                self._patience.note_answers()
            return 0.0
        for vehicle in late:
            vehicle.probe()
        left = self._patience.left()
        if left <= 0:
            self._patience.note_deadline(vehicle.drone for vehicle in late)
        return left

    def forget(self, drones: np.ndarray) -> None:
        """Hold drones that were reset until the next answer. Their ArduPilot is not told."""
        self._commands.forget(drones)
        for vehicle in np.array(self._vehicles)[drones]:
            if vehicle.has_answered:
                self._log.warning(
                    f"{vehicle.drone}: it was reset, and its ArduPilot flies on with what it "
                    "believed: for a new flight, start ArduPilot again"
                )

    def set_paused(self, paused: bool) -> None:
        """Begin to wait anew."""
        del paused
        self._patience.begin()

    # From any thread.

    def interrupt(self) -> None:
        """Wake `collect`."""
        self._sockets.wake()

    def close(self) -> None:
        """Close all ports."""
        for vehicle in self._vehicles:
            vehicle.close()
        self._sockets.close()

    def status(self) -> DoorStatus:
        """Return who flies the drones."""
        attached = tuple(v.drone for v in self._vehicles if v.has_answered)
        patience = self._patience
        return DoorStatus(attached, patience.cycles, patience.timeouts, self._commands.refused)
