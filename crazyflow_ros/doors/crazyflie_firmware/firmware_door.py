"""The door through which the Crazyflie's firmware, built for a computer, flies the drones.

The firmware's loop runs with the packets of its sensors, but its estimator, planner and time-outs
follow wall time, and so does the simulation behind this door.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.plain_values import check
from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors.crazyflie_firmware.firmware_build import NAME, FirmwareBuild
from crazyflow_ros.doors.crazyflie_firmware.firmware_link import FirmwareLink, Relay
from crazyflow_ros.doors.crazyflie_firmware.firmware_readings import CrazyflieReadings
from crazyflow_ros.doors.door_sockets import FIRST_PORT, LAST_PORT, last_port
from crazyflow_ros.doors.motors import CompensatedRotors
from crazyflow_ros.drones import check_quadrotor
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.runtime.door_commands import Commands
from crazyflow_ros.runtime.door_settings import AutopilotStart, DoorContext
from crazyflow_ros.scene import Mirror

_SILENCE = 1  # s of readings without outputs after which a firmware is lost
_MOMENT = 0.003  # s; a firmware answers the first reading after each of its ticks of 1 ms
_CALIBRATION = 10  # s of readings after which one without any outputs is reported
_STALL = 0.05  # s; what is later than that is not caught up with
_CATCHES_UP = 0.75  # of a control period, the shortest one


@dataclass(frozen=True)
class CrazyflieFirmware:
    """Settings of the door; in the node, the parameters `crazyflie_firmware.rate` and so on."""

    address: Annotated[str, Spec("Address of the network interface to listen on")] = "127.0.0.1"
    port: Annotated[
        int,
        Spec("UDP port of the first drone's firmware; the others follow", FIRST_PORT, LAST_PORT),
    ] = 19950
    cflib_port: Annotated[
        int,
        Spec("UDP port for cflib of the first drone; the others follow", FIRST_PORT, LAST_PORT),
    ] = 19850
    rate: Annotated[
        int,
        Spec("Readings of the IMU a second [Hz]; the firmware expects 1000", 500, 1000),
    ] = 1000
    pose_rate: Annotated[
        int,
        Spec("Poses of a motion capture system that the firmware gets [Hz]; 0: none", 0, 250),
    ] = 100

    def open(self, context: DoorContext) -> CrazyflieFirmwareDoor:
        """See `DoorSettings`."""
        return CrazyflieFirmwareDoor(self, context)

    def autopilots(self, start: AutopilotStart) -> FirmwareBuild:
        """See `StartsAutopilots`."""
        return FirmwareBuild(self.port, start, self.address)


class CrazyflieFirmwareDoor:
    """Lets each drone's firmware fly it; see `Door`.

    A drone is held where it is until its firmware has calibrated its sensors and runs its motors.
    Then it flies as programs command that are connected to the firmware by cflib. If the firmware
    ends, the rotors stop until another one connects. Simulated time never outruns wall time.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable; the message names it.
        OSError: A port cannot be opened.
    """

    name = NAME

    def __init__(self, settings: CrazyflieFirmware, context: DoorContext) -> None:
        check(settings)
        check_quadrotor(context.drone_model, f"the door {NAME}")
        drones = context.drones
        _check_ports(settings, len(drones))
        self.period = ticks_per_period(context.freq, settings.rate, f"{NAME}.rate")
        self._rate, self._log = settings.rate, context.logger
        self._rotors = CompensatedRotors(context.drone_model)
        self._readings = CrazyflieReadings(settings.rate, settings.pose_rate, context)
        self._commands = Commands(drones, OnLoss.stop, self._log)
        self._pace, self._tick = Pace(context.freq, self.period), -1
        self._news = threading.Event()
        self._counts = np.zeros(len(drones), int)  # of the outputs in force
        self._silent = np.zeros(len(drones), int)  # readings since then
        self._flies = np.zeros(len(drones), bool)
        self._answers = self._losses = 0
        with ExitStack() as stack:
            self._links: list[FirmwareLink] = []
            for i, drone in enumerate(drones):
                ports = settings.port + i, settings.cflib_port + i
                link = FirmwareLink(
                    drone, settings.address, *ports, logger=self._log, wake=self._news.set
                )
                stack.callback(link.close)
                self._links.append(link)
            self._relay = Relay(self._links)
            stack.pop_all()
        for i, drone in enumerate(drones):
            self._log.info(
                f"{drone}: waits for its firmware at {settings.address}, UDP {settings.port + i}; "
                f"cflib: udp://{settings.address}:{settings.cflib_port + i}"
            )

    # In the physics thread.

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Send the readings of a new control tick."""
        del mirror
        if snapshot.tick % self.period or snapshot.tick == self._tick:
            return
        self._tick = snapshot.tick
        for link, readings in zip(self._links, self._readings.take(snapshot)):
            link.send(readings)

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """Wait until wall time has reached the tick, and collect the newest outputs."""
        del interrupted  # the wait is shorter than anybody notices
        self._pace.wait(snapshot.tick)
        self._wait_for_slow_ones()
        for i, link in enumerate(self._links):
            latest = link.latest
            if latest is not None and latest[1] != self._counts[i]:
                outputs, self._counts[i] = latest
                self._take(i, outputs)
            elif link.is_connected:
                self._silent[i] += 1
                self._note_silence(i)
        command[:], level[:] = self._commands.values, self._commands.level
        return True

    def _wait_for_slow_ones(self) -> None:
        """Wait briefly if a firmware has more unprocessed readings than it can hold."""
        self._news.clear()
        if any(link.is_full for link in self._links):
            self._news.wait(_MOMENT)

    def _take(self, drone: int, outputs: Sequence[int]) -> None:
        self._silent[drone] = 0
        self._answers += 1
        if not self._flies[drone]:
            self._flies[drone] = True
            self._log.info(f"{self._links[drone].drone}: its firmware runs its motors")
        self._commands.put(drone, Level.rotor_velocity, self._rotors.speeds(outputs))

    def _note_silence(self, drone: int) -> None:
        name, silent = self._links[drone].drone, self._silent[drone]
        if self._flies[drone] and silent >= _SILENCE * self._rate:
            self._flies[drone] = False
            self._losses += 1
            self._commands.lose(drone)
            self._log.warning(
                f"{name}: its firmware has not sent outputs for {_SILENCE} s of readings: "
                f"{self._commands.without}"
            )
        elif silent == _CALIBRATION * self._rate:
            self._log.warning(
                f"{name}: its firmware has not sent outputs for {_CALIBRATION} s of readings, and "
                "should have calibrated its sensors: see its console, and start it again"
            )

    def forget(self, drones: np.ndarray) -> None:
        """Hold drones that were reset until the next outputs; their firmware is not told."""
        self._commands.forget(drones)
        self._readings.forget(drones)
        for i in np.arange(len(self._links))[drones].tolist():
            if self._flies[i]:
                self._flies[i] = False
                self._log.warning(
                    f"{self._links[i].drone}: it was reset, and its firmware flies on with what it "
                    "was told before: start the firmware again"
                )

    def set_paused(self, paused: bool) -> None:
        """Start over with following wall time."""
        del paused
        self._pace.begin()

    # From any thread.

    def interrupt(self) -> None:
        """Do nothing: `collect` never waits for long."""

    def close(self) -> None:
        """Close the ports."""
        self._relay.close()

    def status(self) -> DoorStatus:
        """Return which drones their firmware flies."""
        attached = (link.drone for link, flies in zip(self._links, self._flies) if flies)
        return DoorStatus(tuple(attached), self._answers, self._losses, self._commands.refused)


class Pace:
    """Keeps the control ticks of a door from outrunning wall time, in which its programs live.

    After a stall, it catches up evenly, because a firmware processes one reading at a time.

    Args:
        freq: Ticks per second.
        period: Ticks between two control ticks.
    """

    def __init__(self, freq: int, period: int) -> None:
        self._freq, self._shortest = freq, _CATCHES_UP * period / freq
        self._tick, self._time = -1, 0.0  # of the anchor
        self._latest = 0.0

    def begin(self) -> None:
        """Start over, because time stood still."""
        self._tick = -1

    def wait(self, tick: int) -> None:
        """Wait until wall time has reached a tick."""
        now = time.monotonic()
        due = self._time + (tick - self._tick) / self._freq
        if self._tick < 0 or abs(now - due) > _STALL:
            self._tick, self._time = tick, now
            due = now
        due = max(due, self._latest + self._shortest)
        if due > now:
            time.sleep(due - now)
        self._latest = max(due, now)


def _check_ports(settings: CrazyflieFirmware, drones: int) -> None:
    """Raise a ValueError if there are not enough ports for the drones."""
    for name, first in (("port", settings.port), ("cflib_port", settings.cflib_port)):
        last_port(f"{NAME}.{name}", first, drones)
    if abs(settings.port - settings.cflib_port) < drones:
        raise ValueError(
            f"{NAME}: {drones} drones need as many ports from port, {settings.port}, as from "
            f"cflib_port, {settings.cflib_port}, and none of them twice"
        )
