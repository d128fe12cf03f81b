"""The door through which PX4 flies the drones: one PX4 for each of them, in lock-step.

Source of the interface: PX4's documents, https://docs.px4.io/main/en/simulation/, and its module
`simulator_mavlink`. PX4 connects to a TCP port, and sends its outputs in answer to each frame of
readings, whose time is its clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import check
from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors.commands import Commands
from crazyflow_ros.doors.motors import QUAD_X, Motors
from crazyflow_ros.doors.patience import Patience
from crazyflow_ros.doors.px4.mavlink import Message
from crazyflow_ros.doors.px4.origin import Origin
from crazyflow_ros.doors.px4.readings import Px4Readings
from crazyflow_ros.doors.px4.vehicle import Vehicle
from crazyflow_ros.doors.settings import DoorContext
from crazyflow_ros.doors.sockets import DoorSockets
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.scene import Mirror

NAME = "px4"
_ALL_ANSWERED = 250  # Hz, up to which PX4 answers every frame
_LAST_PORT = 65535


@dataclass(frozen=True)
class Px4:
    """Settings of the door: in the node, the parameters px4.port and so on."""

    address: Annotated[str, Spec("Address of the network interface for PX4")] = "127.0.0.1"
    port: Annotated[
        int, Spec("TCP port of the first drone's PX4; the others follow", 1024, _LAST_PORT)
    ] = 4560
    rate: Annotated[
        int,
        Spec(
            "Frames of readings a second [Hz]; must divide freq; PX4 answers all up to 250",
            50,
            1000,
        ),
    ] = _ALL_ANSWERED
    timeout: Annotated[
        float, Spec("Wall time to wait for the answer to a frame [s]", 0.001, 3600)
    ] = 1.0
    boot_timeout: Annotated[
        float,
        Spec("Wall time to wait for an answer as long as PX4 has given none [s]", 0.001, 3600),
    ] = 0.02
    latitude: Annotated[float, Spec("Latitude of the world's origin [degrees]", -90, 90)] = (
        47.397742
    )
    longitude: Annotated[float, Spec("Its longitude [degrees]", -180, 180)] = 8.545594
    altitude: Annotated[float, Spec("Its altitude above sea level [m]", -2000, 19_000)] = 488.0
    declination: Annotated[
        float, Spec("Declination of the magnetic field there [degrees]", -180, 180)
    ] = 3.5
    inclination: Annotated[
        float, Spec("Inclination of the magnetic field there [degrees], positive down", -90, 90)
    ] = 63.4
    magnetic_field: Annotated[
        float, Spec("Strength of the magnetic field there [microtesla]", 1, 100)
    ] = 48.4
    range_finder: Annotated[
        bool, Spec("The drones have range finders that look down, up to 4 m")
    ] = False

    def open(self, context: DoorContext) -> Px4Door:
        """Open the ports.

        Raises:
            ValueError: A setting is not usable.
            OSError: A port cannot be opened.
        """
        return Px4Door(self, context)

    @property
    def origin(self) -> Origin:
        """Where the world's origin is."""
        return Origin(
            *(self.latitude, self.longitude, self.altitude),
            *(self.declination, self.inclination, self.magnetic_field),
        )


class Px4Door:
    """Lets each drone's PX4 fly it; see `Door`.

    Time begins once every drone has a PX4. PX4 answers no frame until it has booted, and time runs
    on meanwhile; later, time waits for the answers. A drone whose PX4 has ended stops its rotors,
    and a new PX4 may connect at any time.

    PX4's time is counted in frames, and goes on through resets and through jumps of the simulated
    time: PX4 survives none of them.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable; the message names it.
        OSError: A port cannot be opened.
    """

    name = NAME

    def __init__(self, settings: Px4, context: DoorContext) -> None:
        check(settings)
        drones, last = context.drones, settings.port + len(context.drones) - 1
        if last > _LAST_PORT:
            raise ValueError(
                f"{NAME}.port: {len(drones)} drones need ports up to {last}, beyond {_LAST_PORT}"
            )
        self.period = ticks_per_period(context.freq, settings.rate, f"{NAME}.rate")
        self._settings, self._log, rate = settings, context.logger, settings.rate
        self._motors = Motors(context.drone_model, QUAD_X)
        self._readings = Px4Readings(
            settings.origin, rate, range_finder=settings.range_finder, context=context
        )
        self._commands = Commands(drones, OnLoss.stop, self._log)
        self._patience = Patience(NAME, 1 / rate, settings.timeout, self._log)
        self._frame = 0  # number of the latest one
        self._messages: list[list[Message]] = []  # its, for each drone
        self._tick, self._since = -1, 0.0  # its tick, and the wall time since when it waits
        self._have_come = False
        self._sockets = DoorSockets()
        self._vehicles: list[Vehicle] = []
        try:
            for i, drone in enumerate(drones):
                self._vehicles.append(self._vehicle(i, drone))
        except OSError:
            self.close()
            raise
        self._log.info(
            f"{NAME}: waits for {len(drones)} PX4 at {settings.address}, "
            f"TCP port {settings.port}" + (f" to {last}" if last > settings.port else "")
        )

    def _vehicle(self, i: int, drone: str) -> Vehicle:
        return Vehicle(
            drone,
            self._settings.address,
            self._settings.port + i,
            self._sockets.selector,
            command=partial(self._command, i),
            lost=partial(self._commands.lose, i),
            logger=self._log,
        )

    def _command(self, drone: int, controls: Sequence[float]) -> None:
        """Put the outputs of a PX4 into force."""
        try:
            self._commands.put(drone, Level.rotor_velocity, self._motors.speeds(controls))
        except ValueError as error:
            self._commands.refuse(drone, f"command {shown(controls[:4])}", str(error))

    @property
    def _time_usec(self) -> int:
        return self._frame * 1_000_000 // self._settings.rate

    # In the physics thread.

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Send the frame of a new control tick."""
        if snapshot.tick % self.period or snapshot.tick == self._tick:
            return
        self._tick, self._frame = snapshot.tick, self._frame + 1
        self._messages = self._readings.take(snapshot, mirror, self._time_usec)
        self._begin()
        self._send()

    def _send(self) -> None:
        """Send the frame to those that have not got it, which may have just come."""
        for vehicle, messages in zip(self._vehicles, self._messages):
            vehicle.send(messages, self._time_usec)

    def _begin(self) -> None:
        """Begin to wait."""
        self._patience.begin()
        self._since = time.monotonic()

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
        self._send()
        if not self._have_come:
            self._have_come = all(vehicle.is_connected for vehicle in self._vehicles)
            self._begin()
            if not self._have_come:
                return math.inf
        waited_for = [vehicle for vehicle in self._vehicles if vehicle.is_waited_for]
        booting = any(vehicle.is_booting for vehicle in waited_for)
        if not waited_for:
            if any(vehicle.is_connected for vehicle in self._vehicles):
                self._patience.note_answers()
            return 0.0
        rate = self._settings.rate
        late = [v.drone for v in waited_for if not v.is_booting and rate <= _ALL_ANSWERED]
        if not late:
            window = self._settings.boot_timeout if booting else 1 / rate
            return self._since + window - time.monotonic()
        left = self._patience.left()
        if left <= 0:
            self._patience.note_deadline(late)
        return left

    def forget(self, drones: np.ndarray) -> None:
        """Hold drones that were reset until the next answer. Their PX4 cannot follow them."""
        self._commands.forget(drones)
        self._readings.forget(drones)
        for vehicle in np.array(self._vehicles)[drones]:
            if vehicle.is_connected and not vehicle.is_booting:
                self._log.warning(
                    f"{vehicle.drone}: it was reset, and its PX4 believes that it flies on: start "
                    "PX4 again"
                )

    def set_paused(self, paused: bool) -> None:
        """Begin to wait anew."""
        del paused
        self._begin()

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
        attached = (v.drone for v in self._vehicles if v.is_connected and not v.is_booting)
        patience = self._patience
        return DoorStatus(
            tuple(attached), patience.cycles, patience.timeouts, self._commands.refused
        )
