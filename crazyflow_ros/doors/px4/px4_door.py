"""The door through which PX4 flies the drones: one PX4 for each of them, in lock-step.

Source of the interface: PX4's documents, https://docs.px4.io/main/en/simulation/, and its module
`simulator_mavlink`. PX4 connects to a TCP port and answers each frame of readings with its outputs;
the time of the frames is its clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.doors.door_sockets import FIRST_PORT, LAST_PORT
from crazyflow_ros.doors.px4.px4_build import Px4Build
from crazyflow_ros.doors.px4.px4_readings import Px4Readings, Px4Sensors
from crazyflow_ros.doors.px4.px4_vehicle import Px4Frame, Px4Vehicle
from crazyflow_ros.doors.vehicles import LockStepDoor
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.runtime.door_settings import AutopilotStart, DoorContext
from crazyflow_ros.scene import Mirror

NAME = "px4"
_ALL_ANSWERED = 250  # Hz, up to which PX4 answers every frame


@dataclass(frozen=True, kw_only=True)
class Px4(Px4Sensors):
    """Settings of the door; in the node, the parameters `px4.port` and so on."""

    port: Annotated[
        int, Spec("TCP port of the first drone's PX4; the others follow", FIRST_PORT, LAST_PORT)
    ] = 4560
    rate: Annotated[
        int,
        Spec(
            "Frames of readings a second [Hz]; must divide freq; PX4 answers all up to 250",
            50,
            1000,
        ),
    ] = _ALL_ANSWERED
    timeout: float = 1.0
    boot_timeout: Annotated[
        float,
        Spec("Wall time to wait for an answer as long as PX4 has given none [s]", 0.001, 3600),
    ] = 0.02

    def open(self, context: DoorContext) -> Px4Door:
        """See `DoorSettings`."""
        return Px4Door(self, context)

    def autopilots(self, start: AutopilotStart) -> Px4Build:
        """See `StartsAutopilots`."""
        return Px4Build(self.port, start)


class Px4Door(LockStepDoor[Px4Vehicle, Px4Frame]):
    """Lets each drone's PX4 fly it.

    PX4 answers no frame until it has booted; time runs on meanwhile. PX4's time counts frames,
    because it does not survive a clock that is set back.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable; the message names it.
        OSError: A port cannot be opened.
    """

    name, title, ports = NAME, "PX4", 1

    def __init__(self, settings: Px4, context: DoorContext) -> None:
        super().__init__(settings, context)
        self._settings = settings
        self._readings = Px4Readings(settings, context)
        self._since = 0.0  # wall time since when the frame waits
        self._open(Px4Vehicle, "TCP")

    @property
    def _time_usec(self) -> int:
        return self._number * 1_000_000 // self._settings.rate

    def _frames_of(self, snapshot: Snapshot, mirror: Mirror) -> list[Px4Frame]:
        time_usec = self._time_usec
        messages = self._readings.take(snapshot, mirror, time_usec)
        return [Px4Frame(time_usec, own) for own in messages]

    def _add_to_frame(self, snapshot: Snapshot) -> None:
        truths = self._readings.truth(snapshot, self._time_usec)
        for vehicle, truth in zip(self._vehicles, truths):
            vehicle.tell(truth)

    def _begin(self) -> None:
        super()._begin()
        self._since = time.monotonic()

    def _left_for(self, late: Sequence[Px4Vehicle]) -> float:
        """Wait for those that answer every frame, and for others as long as the settings say."""
        settings = self._settings
        awaited = [v for v in late if v.has_answered and settings.rate <= _ALL_ANSWERED]
        if awaited:
            return super()._left_for(awaited)
        are_booting = any(not vehicle.has_answered for vehicle in late)
        window = settings.boot_timeout if are_booting else 1 / settings.rate
        return self._since + window - time.monotonic()

    def forget(self, drones: np.ndarray) -> None:
        """Hold drones that were reset until the next answer; give their sensors other errors."""
        super().forget(drones)
        self._readings.forget(drones)
