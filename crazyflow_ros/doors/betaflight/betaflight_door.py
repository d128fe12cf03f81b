"""The door through which Betaflight's SITL flies a drone.

Source of the interface: `sitl.c` and `target.h` of Betaflight's platform SIMULATOR. It answers a
packet of readings with a packet of motor outputs. Its clock follows wall time at the rate at which
the times of the packets advance, so this is no lock-step.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from crazyflow_ros.checks import Spec
from crazyflow_ros.checks.limits import shown
from crazyflow_ros.checks.plain_values import check
from crazyflow_ros.control import ticks_per_period
from crazyflow_ros.doors.betaflight.radio import Radio
from crazyflow_ros.doors.gamepad import Gamepad, GamepadSettings
from crazyflow_ros.doors.motors import BETAFLIGHT_X, QUAD_X, Motors, Order
from crazyflow_ros.doors.samples import DRONE, Samples
from crazyflow_ros.doors.vehicles import WorldOrigin
from crazyflow_ros.drones import check_quadrotor
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.runtime.door_commands import Commands
from crazyflow_ros.runtime.door_settings import DoorContext
from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.frames import flu_to_frd
from crazyflow_ros.sensors import BarometerSensorCfg, ImuSensorCfg, ObjRef
from crazyflow_ros.sensors.barometer import BMP388
from crazyflow_ros.sensors.gnss import enu_to_geodetic

NAME = "betaflight"
MOTORS_PORT, READINGS_PORT = 9002, 9003
"""UDP ports of the simulator and of Betaflight, which has no option to change them."""
READINGS = struct.Struct("<18d")
"""Time [s], angular velocity, minus the specific force, quaternion wxyz, velocity, place, Pa."""
OUTPUTS = struct.Struct("<4f")

_ORDERS: dict[str, Order] = {"gazebo": QUAD_X, "betaflight": BETAFLIGHT_X}
_GYRO_Z = {"frd": 1.0, "flu": -1.0}  # times the rate about the axis down
_MISSED = 25  # answers in a row after which Betaflight is lost
_BURST = 16  # packets at once
_SLOW_RATE = 50  # Hz, of barometer and receiver


@dataclass(frozen=True, kw_only=True)
class Betaflight(WorldOrigin):
    """Settings of the door; in the node, the parameters `betaflight.rate` and so on."""

    address: Annotated[str, Spec("Address of the machine that Betaflight runs on")] = "127.0.0.1"
    rate: Annotated[int, Spec("Packets of readings a second [Hz]; must divide freq", 100, 1000)] = (
        250
    )
    timeout: Annotated[
        float, Spec("Wall time to wait for the answer to a packet [s]", 0.001, 1)
    ] = 0.02
    motor_order: Annotated[
        str,
        Spec(
            "Order of the outputs: gazebo (4.6 and older) or betaflight (since April 2026)",
            choices=list(_ORDERS),
        ),
    ] = "gazebo"
    gyro_z: Annotated[
        str,
        Spec(
            "Axis of the yaw rate that Betaflight expects: frd, down, or flu, up, as builds since "
            "April 2026 with ENABLE_GAZEBO_BRIDGE do",
            choices=list(_GYRO_Z),
        ),
    ] = "frd"
    gamepad: GamepadSettings = field(default_factory=GamepadSettings)

    def open(self, context: DoorContext) -> BetaflightDoor:
        """See `DoorSettings`."""
        return BetaflightDoor(self, context)


class BetaflightDoor:
    """Lets Betaflight fly one drone; see `Door`.

    The drone is held until Betaflight answers. Simulated time waits only briefly for an answer,
    because Betaflight's clock follows wall time; run the simulation in real time. If Betaflight
    ends, the rotors stop until it is back.

    Args:
        settings: The settings.
        context: The simulation.

    Raises:
        ValueError: A setting is not usable, or there are several drones: Betaflight's ports are
            those of one.
        OSError: The port cannot be opened.
    """

    name = NAME

    def __init__(self, settings: Betaflight, context: DoorContext) -> None:
        check(settings)
        check_quadrotor(context.drone_model, f"the door {NAME}")
        if len(context.drones) != 1:
            raise ValueError(
                f"{NAME} flies one drone, because its ports cannot be changed; got "
                f"{len(context.drones)}: {shown(', '.join(context.drones))}"
            )
        self.period = ticks_per_period(context.freq, settings.rate, f"{NAME}.rate")
        self._settings, self._log = settings, context.logger
        (self._drone,) = context.drones
        self._motors = Motors(context.drone_model, _ORDERS[settings.motor_order])
        self._commands = Commands(context.drones, OnLoss.stop, self._log)
        self._samples = self._sensors(context)
        self._pressure, self._place = 0.0, (0.0, 0.0, 0.0)
        self._tick, self._sent = -1, 0.0  # of the latest packet, and its wall time
        self._is_answered, self._missed = True, _MISSED  # as if it had been lost
        self._answers = self._timeouts = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._peer = socket.getaddrinfo(
                settings.address, READINGS_PORT, socket.AF_INET, socket.SOCK_DGRAM
            )[0][4]
            own = _own_address(self._peer)
            self._socket.bind((own, MOTORS_PORT))
        except OSError as error:
            self._socket.close()
            where = f"udp port {MOTORS_PORT}, {settings.address}"
            raise OSError(f"{NAME}: {where}: {error}") from None
        self._gamepad = Gamepad(settings.gamepad)
        self._radio = Radio(self._drone, self._gamepad, self._peer, self._socket, self._log)
        self._log.info(
            f"{NAME}: waits for motor outputs on UDP {own}:{MOTORS_PORT}, sends readings to "
            f"{settings.address}:{READINGS_PORT}"
        )

    def _sensors(self, context: DoorContext) -> Samples:
        at, seed = ObjRef("site", "imu", DRONE), context.seed
        imu = ImuSensorCfg(name="imu", frame=at, seed=seed)
        baro = BarometerSensorCfg(
            name="barometer", frame=at, altitude=self._settings.altitude, noise=BMP388, seed=seed
        )
        sensors = ((imu, self._settings.rate), (baro, _SLOW_RATE))
        return Samples(context.drone_model, context.drones, sensors, context.freq, self.period)

    # In the physics thread.

    @property
    def _is_there(self) -> bool:
        return self._missed < _MISSED

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Send the readings of a new control tick."""
        del mirror
        if snapshot.tick % self.period or snapshot.tick == self._tick:
            return
        self._tick, self._sent, self._is_answered = snapshot.tick, time.monotonic(), False
        packet = READINGS.pack(snapshot.time_ns * 1e-9, *self._readings(snapshot))
        with suppress(OSError):  # nobody listens, or not yet
            self._socket.sendto(packet, self._peer)
        if self._is_there:
            self._radio.send(snapshot.time_ns * 1e-9)

    def _readings(self, snapshot: Snapshot) -> list[float]:
        due, settings = self._samples.take(snapshot), self._settings
        if "barometer" in due:
            self._pressure = float(due["barometer"].pressure[0])
            latitude, longitude, altitude = enu_to_geodetic(
                snapshot.pos, settings.latitude, settings.longitude, settings.altitude
            )
            self._place = float(longitude[0]), float(latitude[0]), float(altitude[0])
        p, q, r = flu_to_frd(due["imu"].angular_velocity[0]).tolist()
        x, y, z, w = snapshot.quat[0].tolist()
        return [
            *(p, q, r * _GYRO_Z[settings.gyro_z]),
            *(-due["imu"].linear_acceleration[0]).tolist(),
            *(w, x, -y, -z),
            *snapshot.vel[0].tolist(),
            *self._place,
            self._pressure,
        ]

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """Wait briefly for the answer."""
        del snapshot, interrupted  # the wait is shorter than anybody notices
        for _ in range(_BURST):
            if not self._receive(0.0):
                break
        while not self._is_answered and self._is_there:
            left = self._sent + self._settings.timeout - time.monotonic()
            if left <= 0:
                self._note_missing()
                break
            self._receive(left)
        command[:], level[:] = self._commands.values, self._commands.level
        return True

    def _note_missing(self) -> None:
        self._is_answered = True  # it is not waited for any more
        self._missed += 1
        self._timeouts += 1
        if not self._is_there:
            self._commands.lose(0)
            self._radio.forget()
            self._log.warning(
                f"{self._drone}: Betaflight has not answered {_MISSED} packets in a row: "
                f"{self._commands.without}"
            )

    def _receive(self, timeout: float) -> bool:
        """Take a packet that arrives within a time [s]; return whether there was one."""
        self._socket.settimeout(timeout)
        try:
            packet, sender = self._socket.recvfrom(OUTPUTS.size + 1)
        except (BlockingIOError, TimeoutError, ConnectionError):
            return False
        if sender[0] != self._peer[0] or len(packet) != OUTPUTS.size:
            what = f"a packet of {len(packet)} bytes from {sender[0]}"
            expected = f"expected {OUTPUTS.size} from {self._peer[0]}"
            self._commands.refuse(0, what, expected)
            return True
        outputs = OUTPUTS.unpack(packet)
        try:
            self._commands.put(0, Level.rotor_velocity, self._motors.speeds(outputs))
        except ValueError as error:
            self._commands.refuse(0, f"command {shown(outputs)}", str(error))
            return True
        if not self._is_there:
            self._log.info(f"{self._drone}: Betaflight answers")
        self._answers += not self._is_answered
        self._is_answered, self._missed = True, 0
        return True

    def forget(self, drones: np.ndarray) -> None:
        """Hold the drone until the next answer."""
        self._commands.forget(drones)
        self._samples.forget(drones)

    def set_paused(self, paused: bool) -> None:
        """Restart the wait for an answer."""
        del paused
        self._sent = time.monotonic()

    # From any thread.

    def take_gamepad(self, axes: Sequence[float], buttons: Sequence[int]) -> None:
        """Move the sticks; see `TakesGamepad`."""
        self._gamepad.put(axes, buttons)

    def interrupt(self) -> None:
        """Do nothing: `collect` never waits for long."""

    def close(self) -> None:
        """Close the port."""
        self._socket.close()

    def status(self) -> DoorStatus:
        """Return whether Betaflight flies the drone."""
        attached = (self._drone,) if self._is_there else ()
        return DoorStatus(attached, self._answers, self._timeouts, self._commands.refused)


def _own_address(peer: tuple[Any, ...]) -> str:
    """Return this machine's address on the route to a peer.

    Raises:
        OSError: The peer is unreachable.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(peer)  # which sends nothing
        return str(probe.getsockname()[0])
