"""The door through which ArduPilot flies the drones: one ArduPilot for each, in lock-step.

Source of the interface: ArduPilot's `libraries/SITL/SIM_JSON.cpp`. ArduPilot sends its outputs to
a UDP port and waits for readings, whose timestamps are its clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from crazyflow_ros.checks import Spec
from crazyflow_ros.doors.ardupilot.ardupilot_build import PORTS, ArduPilotBuild
from crazyflow_ros.doors.ardupilot.ardupilot_readings import RANGE_RATE, ArduPilotReadings, radio
from crazyflow_ros.doors.ardupilot.ardupilot_vehicle import ArduPilotFrame, ArduPilotVehicle
from crazyflow_ros.doors.ardupilot.parameter_file import parameters
from crazyflow_ros.doors.door_sockets import FIRST_PORT, LAST_PORT
from crazyflow_ros.doors.gamepad import Gamepad, GamepadSettings
from crazyflow_ros.doors.vehicles import LockStepDoor, LockStepSettings
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.runtime.door_settings import AutopilotStart, DoorContext
from crazyflow_ros.scene import Mirror

NAME = "ardupilot"
HEADING = 90
"""Degrees: drones face east at the start."""
_LOOP_RATE = 400  # Hz, ArduPilot's default


@dataclass(frozen=True, kw_only=True)
class ArduPilot(LockStepSettings):
    """Settings of the door; in the node, the parameters `ardupilot.port` and so on."""

    port: Annotated[
        int,
        Spec(
            f"UDP port of the first drone's ArduPilot; each further one is {PORTS} higher",
            FIRST_PORT,
            LAST_PORT,
        ),
    ] = 9002
    rate: Annotated[int, Spec("Frames of readings a second [Hz]; must divide freq", 50, 2000)] = 500
    timeout: float = 10.0
    gamepad: GamepadSettings = field(default_factory=GamepadSettings)

    def open(self, context: DoorContext) -> ArduPilotDoor:
        """See `DoorSettings`."""
        return ArduPilotDoor(self, context)

    def autopilots(self, start: AutopilotStart) -> ArduPilotBuild:
        """See `StartsAutopilots`."""
        model, range_finder = start.config.drone_model, self.range_finder
        defaults = parameters(model, self.loop_rate, range_finder=range_finder)
        return ArduPilotBuild(self.port, start, self.address, self.home, defaults)

    @property
    def loop_rate(self) -> int:
        """ArduPilot's SCHED_LOOP_RATE [Hz]; it does not arm with fewer than 1.8 frames per loop."""
        return min(_LOOP_RATE, self.rate // 2)

    @property
    def home(self) -> str:
        """ArduPilot's option --home."""
        return f"{self.latitude:.9g},{self.longitude:.9g},{self.altitude:.9g},{HEADING}"


class ArduPilotDoor(LockStepDoor[ArduPilotVehicle, ArduPilotFrame]):
    """Lets each drone's ArduPilot fly it.

    Each ArduPilot's time counts frames from its first one on.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable; the message names it.
        OSError: A port cannot be opened.
    """

    name, title, ports = NAME, "ArduPilot", PORTS

    def __init__(self, settings: ArduPilot, context: DoorContext) -> None:
        super().__init__(settings, context)
        every = max(1, round(settings.rate / RANGE_RATE)) if settings.range_finder else 0
        self._gamepad = Gamepad(settings.gamepad)
        self._readings = ArduPilotReadings(len(context.drones), every)
        hint = f"--home {settings.home} and a SCHED_LOOP_RATE of at most {settings.loop_rate}"
        self._open(partial(ArduPilotVehicle, rate=settings.rate), "UDP", f", with {hint}")

    def _frames_of(self, snapshot: Snapshot, mirror: Mirror) -> list[ArduPilotFrame]:
        self._sockets.serve()  # what was sent again while time stood still is no answer
        entries = self._readings.take(snapshot, mirror, self._number)
        if not self._gamepad.is_silent and (channels := self._gamepad.channels()) is not None:
            entries[0] += radio(channels)
        return [ArduPilotFrame(self._number, own) for own in entries]

    def _left_for(self, late: Sequence[ArduPilotVehicle]) -> float:
        for vehicle in late:
            vehicle.probe()
        return super()._left_for(late)

    # From any thread.

    def take_gamepad(self, axes: Sequence[float], buttons: Sequence[int]) -> None:
        """Move the sticks of the first drone; see `TakesGamepad`.

        Without its gamepad a drone has no radio, and ArduPilot's failsafe acts.
        """
        self._gamepad.put(axes, buttons)
