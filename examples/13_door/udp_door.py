"""A door of your own: autopilots fly the drones over UDP, in lock-step. docs/guides/extend.md
explains it.

Each drone has an autopilot, which sends COMMAND, and gets READING in answer to it; all numbers are
little-endian. Time waits until all have answered the reading of a tick. An autopilot may repeat its
command when no reading comes, because UDP loses packets.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors import Commands, DoorContext, Patience, Samples
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.scene import Mirror
from crazyflow_ros.sensors import ImuSensorCfg, ObjRef

COMMAND = struct.Struct("<BQ4d")  # drone, tick of the reading it answers or 0, rotor speeds [rad/s]
READING = struct.Struct("<Q6d10d")  # tick, gyro, accelerometer, position, attitude xyzw, velocity
LOOK = 0.1  # s of wall time after which waiting is interrupted for a moment


@dataclass(frozen=True)
class UdpAutopilot:
    """Settings: in the node, the parameters udp_autopilot.port and so on."""

    port: Annotated[int, Spec("UDP port that autopilots send to", 1024, 65535)] = 9100
    rate: Annotated[int, Spec("Readings a second [Hz]; must divide freq", 1, 100_000)] = 250
    timeout: Annotated[float, Spec("Wall time to wait for autopilots [s]", 0.001, 3600)] = 1.0

    def open(self, context: DoorContext) -> UdpDoor:
        return UdpDoor(self, context)


class UdpDoor:
    name = "udp_autopilot"

    def __init__(self, settings: UdpAutopilot, context: DoorContext) -> None:
        self.period = ticks_per_period(context.freq, settings.rate, "udp_autopilot.rate")
        self._drones, self._log = context.drones, context.logger
        self._commands = Commands(context.drones, OnLoss.stop, self._log)
        self._patience = Patience(self.name, 1 / settings.rate, settings.timeout, self._log)
        imu = ImuSensorCfg(
            name="imu", frame=ObjRef("site", "imu", "drone"), seed=context.seed, debug_vis=False
        )
        given = (context.drone_model, context.drones, [(imu, settings.rate)])
        self._samples = Samples(*given, context.freq, self.period)
        self._imu = np.zeros((len(context.drones), 6))
        self._readings: list[bytes] = []
        self._peers: dict[int, tuple[str, int]] = {}  # addresses of autopilots by drone
        self._answered = dict.fromkeys(range(len(context.drones)), 0)  # latest tick by drone
        self._came = False  # whether all autopilots have come; time waits for them
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", settings.port))
        self._log.info(f"{self.name}: waits for {len(self._drones)} autopilots, {settings.port}")

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        if imu := self._samples.take(snapshot).get("imu"):
            self._imu = np.hstack((imu.angular_velocity, imu.linear_acceleration))
        rows = np.hstack((self._imu, snapshot.pos, snapshot.quat, snapshot.vel)).tolist()
        self._readings = [READING.pack(snapshot.tick, *row) for row in rows]
        self._patience.begin()
        for drone in self._peers:
            self._send(drone)

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        drones = self._peers if self._came else range(len(self._drones))
        while late := [i for i in drones if self._answered[i] != snapshot.tick]:
            left = self._patience.left() if self._came else LOOK
            if interrupted():
                return False
            if left <= 0:
                self._patience.note_deadline(self._drones[i] for i in late)
                for drone in late:  # it may come back
                    del self._peers[drone]
                    self._commands.lose(drone)
                break
            if not self._receive(snapshot.tick, min(left, LOOK)):
                return False
        else:
            self._came = True
            self._patience.note_answers()
        for _ in self._drones:  # from autopilots that come back
            self._receive(snapshot.tick, 0.0)
        command[:], level[:] = self._commands.values, self._commands.level
        return True

    def _receive(self, now: int, timeout: float) -> bool:
        """Take one packet; return whether there was one within a time [s]."""
        self._socket.settimeout(timeout)
        try:
            packet, address = self._socket.recvfrom(COMMAND.size + 1)
        except (TimeoutError, BlockingIOError):
            return False
        if not packet:  # of `interrupt`
            return True
        if len(packet) != COMMAND.size or packet[0] >= len(self._drones):
            self._log.warning(
                f"{self.name}: a packet is no command: {packet[: COMMAND.size].hex()}"
            )
            return True
        drone, tick, *speeds = COMMAND.unpack(packet)
        if drone not in self._peers:
            self._log.info(f"{self.name}: {self._drones[drone]} has an autopilot")
        self._peers[drone] = address
        if tick != now:
            self._send(drone)  # its first packet, or one that it repeats
        elif self._commands.put(drone, Level.rotor_velocity, np.array(speeds)):
            self._answered[drone] = tick
        return True

    def _send(self, drone: int) -> None:
        self._socket.sendto(self._readings[drone], self._peers[drone])

    def interrupt(self) -> None:
        self._socket.sendto(b"", self._socket.getsockname())

    def forget(self, drones: np.ndarray) -> None:
        self._commands.forget(drones)
        self._samples.forget(drones)
        self._answered.update(dict.fromkeys(drones.tolist(), 0))

    def set_paused(self, paused: bool) -> None:
        self._patience.begin()

    def close(self) -> None:
        self._socket.close()

    def status(self) -> DoorStatus:
        attached = tuple(self._drones[drone] for drone in tuple(self._peers))
        counts = self._patience.cycles, self._patience.timeouts, self._commands.refused
        return DoorStatus(attached, *counts)
