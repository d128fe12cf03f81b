"""Lock-step doors with an autopilot per drone: time waits for the answer to each frame."""

from __future__ import annotations

import math
import selectors
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import check
from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors.door_sockets import DoorSockets, last_port
from crazyflow_ros.doors.motors import Motors
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.runtime.door_commands import Commands
from crazyflow_ros.runtime.door_patience import Patience
from crazyflow_ros.runtime.door_settings import DoorContext
from crazyflow_ros.scene import Mirror

F = TypeVar("F")
"""What an autopilot is sent at a control tick, identified by a number or a time."""


@dataclass(frozen=True, kw_only=True)
class WorldOrigin:
    """Settings of doors whose autopilots need the world's place on earth."""

    latitude: Annotated[float, Spec("Latitude of the world's origin [degrees]", -90, 90)] = (
        47.397742
    )
    longitude: Annotated[float, Spec("Its longitude [degrees]", -180, 180)] = 8.545594
    altitude: Annotated[float, Spec("Its altitude above sea level [m]", -2000, 19_000)] = 488.0


@dataclass(frozen=True, kw_only=True)
class LockStepSettings(WorldOrigin):
    """Settings that all lock-step doors share."""

    address: Annotated[str, Spec("Address of the network interface for the autopilots")] = (
        "127.0.0.1"
    )
    port: int
    """Of the first drone's autopilot."""
    rate: int
    """Frames of readings a second [Hz]."""
    timeout: Annotated[float, Spec("Wall time to wait for the answer to a frame [s]", 0.001, 3600)]
    range_finder: Annotated[
        bool, Spec("The drones have range finders that look down, up to 4 m")
    ] = False


@dataclass(frozen=True)
class VehicleContext:
    """What a door gives to a `LockStepVehicle`."""

    drone: str
    """Name of the drone."""
    address: str
    """Of the network interface."""
    port: int
    selector: selectors.BaseSelector
    """Where sockets are registered; their data is called with the socket that is ready."""
    command: Callable[[Sequence[float]], None]
    """Receives the outputs of each answer."""
    refuse: Callable[[str, str], None]
    """Receives a description of what is refused, and what was expected."""
    lost: Callable[[], None]
    """Called when the autopilot has ended."""
    logger: Logger
    """Logs who connects and who is lost."""


class LockStepVehicle(ABC, Generic[F]):
    """A door's side of one autopilot: which frames were sent to it, and which it has answered.

    Args:
        context: The drone, its port, and whom to notify.

    Attributes:
        drone: Name of the drone.
    """

    def __init__(self, context: VehicleContext) -> None:
        self.drone, self._context = context.drone, context
        self._sent = self._answered = 0  # latest frames, 0 before the first one

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether an autopilot is connected."""

    @property
    def has_answered(self) -> bool:
        """Whether an autopilot is connected and has answered a frame."""
        return self.is_connected and self._answered > 0

    @property
    def is_waited_for(self) -> bool:
        """Whether an autopilot is connected and owes the answer to its latest frame."""
        return self.is_connected and self._answered < self._sent

    @abstractmethod
    def send(self, frame: F) -> None:
        """Send a frame once, if an autopilot is connected and wants it."""

    @abstractmethod
    def close(self) -> None:
        """Close the port."""


V = TypeVar("V", bound="LockStepVehicle[Any]")


class LockStepDoor(ABC, Generic[V, F]):
    """Lets each drone's autopilot fly it; see `Door`.

    Time starts once every drone has an autopilot, and waits for their answers. When an autopilot
    ends, the rotors of its drone stop; a new one may connect at any time. Frames are counted from
    the first one on, through resets and jumps of simulated time.

    A subclass opens the ports with `_open`, as the last step of its constructor.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable; the message names it.
    """

    name: str
    title: ClassVar[str]
    """Name of the autopilot in messages."""
    ports: ClassVar[int]
    """Number of ports from one drone to the next."""

    def __init__(self, settings: LockStepSettings, context: DoorContext) -> None:
        check(settings)
        drones = context.drones
        self._last_port = last_port(f"{self.name}.port", settings.port, len(drones), self.ports)
        self.period = ticks_per_period(context.freq, settings.rate, f"{self.name}.rate")
        self._address, self._port = settings.address, settings.port
        self._drones, self._log = drones, context.logger
        self._motors = Motors(context.drone_model)
        self._commands = Commands(drones, OnLoss.stop, self._log, context.n_rotors)
        self._patience = Patience(self.name, 1 / settings.rate, settings.timeout, self._log)
        self._tick, self._number = -1, 0  # of the latest frame
        self._frames: Sequence[F] = ()  # it, for each drone
        self._have_come = False
        self._sockets = DoorSockets()
        self._vehicles: list[V] = []

    def _open(self, vehicle: Callable[[VehicleContext], V], transport: str, more: str = "") -> None:
        """Open the ports.

        Args:
            vehicle: Opens the port of a drone.
            transport: Kind of the ports, for the message about who is awaited.
            more: End of that message.

        Raises:
            OSError: A port cannot be opened.
        """
        try:
            self._vehicles += (vehicle(self._context(i)) for i in range(len(self._drones)))
        except OSError:
            self.close()
            raise
        last = f" to {self._last_port}" if len(self._drones) > 1 else ""
        self._log.info(
            f"{self.name}: waits for {len(self._drones)} {self.title} at {self._address}, "
            f"{transport} port {self._port}{last}{more}"
        )

    def _context(self, drone: int) -> VehicleContext:
        return VehicleContext(
            self._drones[drone],
            self._address,
            self._port + self.ports * drone,
            self._sockets.selector,
            command=partial(self._command, drone),
            refuse=partial(self._commands.refuse, drone),
            lost=partial(self._commands.lose, drone),
            logger=self._log,
        )

    def _command(self, drone: int, outputs: Sequence[float]) -> None:
        """Put the outputs of an autopilot into force."""
        try:
            self._commands.put(drone, Level.rotor_velocity, self._motors.speeds(outputs))
        except ValueError as error:
            self._commands.refuse(
                drone, f"command {shown(outputs[: len(self._motors)])}", str(error)
            )

    # In the physics thread.

    @abstractmethod
    def _frames_of(self, snapshot: Snapshot, mirror: Mirror) -> Sequence[F]:
        """Return the frame `_number` of each drone's autopilot."""

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Send the frame of a new control tick."""
        if snapshot.tick % self.period or snapshot.tick == self._tick:
            return
        self._tick, self._number = snapshot.tick, self._number + 1
        self._frames = self._frames_of(snapshot, mirror)
        self._begin()
        self._send()
        self._add_to_frame(snapshot)

    def _send(self) -> None:
        """Send the frame to autopilots that lack it; some may just have connected."""
        for vehicle, frame in zip(self._vehicles, self._frames):
            vehicle.send(frame)

    def _add_to_frame(self, snapshot: Snapshot) -> None:
        """Send what needs no answer while the autopilots compute; nothing by default."""

    def _begin(self) -> None:
        """Start the wait for answers."""
        self._patience.begin()

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
        """Return how long to keep waiting [s]; zero or less if time may run on."""
        self._send()
        if not self._have_come:
            self._have_come = all(vehicle.is_connected for vehicle in self._vehicles)
            self._begin()
            if not self._have_come:
                return math.inf
        late = [vehicle for vehicle in self._vehicles if vehicle.is_waited_for]
        if late:
            return self._left_for(late)
        if any(vehicle.is_connected for vehicle in self._vehicles):
            self._patience.note_answers()
        return 0.0

    def _left_for(self, late: Sequence[V]) -> float:
        """Return the same while these vehicles, at least one, have not answered."""
        left = self._patience.left()
        if left <= 0:
            self._patience.note_deadline(vehicle.drone for vehicle in late)
        return left

    def forget(self, drones: np.ndarray) -> None:
        """Hold drones that were reset until the next answer; their autopilots are not told."""
        self._commands.forget(drones)
        for vehicle in np.array(self._vehicles)[drones]:
            if vehicle.has_answered:
                self._log.warning(
                    f"{vehicle.drone}: it was reset, and its {self.title} believes that it flies "
                    f"on: start {self.title} again"
                )

    def set_paused(self, paused: bool) -> None:
        """Restart the wait for answers."""
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
        attached = tuple(v.drone for v in self._vehicles if v.has_answered)
        patience = self._patience
        return DoorStatus(attached, patience.cycles, patience.timeouts, self._commands.refused)
