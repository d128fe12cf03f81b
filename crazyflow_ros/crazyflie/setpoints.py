"""Decodes packets to setpoints of the flight commander.

In packets, angles are in degrees, and a pitch forward is negative. Yaw rates of the old types are
positive clockwise.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crazyflow_ros import flight
from crazyflow_ros.checks.compressed_quaternions import decompressed
from crazyflow_ros.crazyflie.crtp import Packet
from crazyflow_ros.crazyflie.memory_port import Trajectories
from crazyflow_ros.crazyflie.parameters import Number
from crazyflow_ros.crazyflie.variables import PWM
from crazyflow_ros.flight.firmware_setpoints import unplanned

_LEAST_THRUST, _MOST_THRUST = 1000, 60000  # PWM, of the old commander
_STREAM, _META = 0, 1  # channels of the setpoint port
_ALT_HOLD_CENTRE = 32767.0  # thrust value that holds the height
_TILT_TO_SPEED = 1 / 30.0  # m/s for a degree, of flightmode.poshold
_STICK_CENTRE, _STICK = 1500.0, 500.0  # of a remote control [us]
_Vertical = type[flight.Takeoff] | type[flight.Land]


@dataclass
class Decoder:
    """Decodes the setpoints of one Crazyflie.

    Args:
        parameter: Returns the value of a parameter.
        most_thrust: Collective thrust at full PWM [N].
        trajectories: The memory for trajectories.
        gentle: Whether setpoints are flown along bounded paths; otherwise they are passed on
            unchanged, as in the firmware.
    """

    parameter: Callable[[str], Number]
    most_thrust: float
    trajectories: Trajectories
    gentle: bool = False
    _locked: bool = field(default=True, init=False)  # until a setpoint without thrust

    def lock(self) -> None:
        """Refuse thrust until a setpoint has none, as the firmware does at its start."""
        self._locked = True

    def attitude(self, packet: Packet) -> flight.Setpoint:
        """Decode a setpoint of the old commander, see `_legacy`.

        Raises:
            ValueError: The packet is malformed, or its thrust is locked.
        """
        return self._as_flown(self._legacy(packet))

    def _as_flown(self, setpoint: flight.Setpoint) -> flight.Setpoint:
        return setpoint if self.gentle else unplanned(setpoint)

    def _legacy(self, packet: Packet) -> flight.Setpoint:
        """Decode roll, pitch, yaw rate and thrust, with the modes of the group `flightmode`."""
        roll, pitch, yaw, thrust = _unpacked("<fffH", packet.data)
        turn = -math.radians(yaw)
        if not thrust:
            self._locked = False
        if self.parameter("flightmode.posSet") and thrust:
            return flight.Position((-pitch, roll, thrust / 1e3), math.radians(yaw))
        if self.parameter("flightmode.althold"):
            climb = (thrust - _ALT_HOLD_CENTRE) / _ALT_HOLD_CENTRE
            if self.parameter("flightmode.poshold"):
                # The firmware's velocities are in the world frame; gentle ones turn with the drone.
                kind = flight.Velocity if self.gentle else flight.VelocityWorld
                return kind((pitch * _TILT_TO_SPEED, roll * _TILT_TO_SPEED, climb), turn)
            return flight.AltitudeHold(math.radians(roll), -math.radians(pitch), turn, climb=climb)
        if self._locked:
            raise ValueError("thrust is locked: send a setpoint with thrust 0 first")
        are_rates = [not self.parameter(f"flightmode.stabMode{name}") for name in ("Roll", "Pitch")]
        limited = 0 if thrust < _LEAST_THRUST else min(thrust, _MOST_THRUST)
        return self._attitude(roll, pitch, turn, limited, are_rates)

    def generic(self, packet: Packet) -> flight.Setpoint:
        """Decode a setpoint of the generic commander, or the end of a stream.

        Raises:
            ValueError: The packet is malformed, or of an unknown type.
        """
        if not packet.data or packet.channel not in (_STREAM, _META):
            raise ValueError(f"unknown setpoint on channel {packet.channel}")
        kind, data = packet.data[0], packet.data[1:]
        if packet.channel == _META:
            if kind:
                raise ValueError(f"unknown meta command {kind}, expected 0")
            return self._as_flown(flight.NotifySetpointsStop())
        decode = _GENERIC.get(kind)
        if decode is None:
            raise ValueError(f"unknown type of setpoint {kind}, expected 0 to 11")
        return self._as_flown(decode(self, data))

    def high_level(self, packet: Packet) -> flight.Setpoint | None:
        """Decode a command of the high-level commander; None if it concerns no motion.

        Raises:
            ValueError: The packet is malformed, or of an unknown type.
        """
        if not packet.data:
            raise ValueError("an empty high-level command")
        kind, data = packet.data[0], packet.data[1:]
        decode = _HIGH_LEVEL.get(kind)
        if decode is None:
            raise ValueError(f"unknown high-level command {kind}, expected 0 to 13")
        return decode(self, data)

    def _attitude(
        self,
        roll: float,
        pitch: float,
        turn: float,
        thrust: float,
        are_rates: Sequence[bool] = (False, False),
    ) -> flight.Setpoint:
        """Return an attitude; roll and pitch are angles [degrees] or rates [degrees/s]."""
        force = thrust / PWM * self.most_thrust
        tilt = math.radians(roll), -math.radians(pitch)
        return flight.AttitudeThrust(*tilt, turn, force, *are_rates)

    # Generic setpoints.

    def _velocity(self, data: bytes, sense: int = 1) -> flight.Setpoint:
        vx, vy, vz, rate = _unpacked("<ffff", data)
        return flight.VelocityWorld((vx, vy, vz), sense * math.radians(rate))

    def _z_distance(self, data: bytes, sense: int = 1) -> flight.Setpoint:
        roll, pitch, rate, z = _unpacked("<ffff", data)
        return flight.AltitudeHold(
            math.radians(roll), -math.radians(pitch), sense * math.radians(rate), height=z
        )

    def _alt_hold(self, data: bytes) -> flight.Setpoint:
        roll, pitch, rate, climb = _unpacked("<ffff", data)
        return flight.AltitudeHold(
            math.radians(roll), -math.radians(pitch), math.radians(rate), climb=climb
        )

    def _hover(self, data: bytes, sense: int = 1) -> flight.Setpoint:
        vx, vy, rate, z = _unpacked("<ffff", data)
        return flight.Hover((vx, vy), sense * math.radians(rate), z)

    def _full_state(self, data: bytes) -> flight.Setpoint:
        numbers = _unpacked("<hhhhhhhhhIhhh", data)
        pos, vel, acc = np.array(numbers[:9]).reshape(3, 3) / 1e3  # mm to m
        rates = np.array(numbers[10:]) / 1e3  # mrad/s
        return flight.FullState(pos, vel, acc, decompressed(numbers[9]), rates)

    def _position(self, data: bytes) -> flight.Setpoint:
        x, y, z, yaw = _unpacked("<ffff", data)
        return flight.Position((x, y, z), math.radians(yaw))

    def _manual(self, data: bytes) -> flight.Setpoint:
        roll, pitch, rate, thrust, are_rates = _unpacked("<fffHB", data)
        return self._attitude(roll, pitch, math.radians(rate), thrust, 2 * [bool(are_rates)])

    def _remote_control(self, data: bytes) -> flight.Setpoint:
        """Decode sticks of a remote control; its first auxiliary switch selects rates."""
        n_others = data[0] & 0x0F if data else 0
        _, roll, pitch, yaw, thrust, *others = _unpacked(f"<B4H{n_others}H", data)
        are_rates = bool(others) and others[0] < _STICK_CENTRE
        kind = "rate" if are_rates else "ang"
        tilts = [
            -(stick - _STICK_CENTRE) / _STICK * float(self.parameter(f"cppm.{most}"))
            for stick, most in ((roll, f"{kind}Roll"), (pitch, f"{kind}Pitch"), (yaw, "rateYaw"))
        ]
        pwm = max(0.0, (thrust - 1000.0) / 1000.0) * PWM
        return self._attitude(tilts[0], tilts[1], math.radians(tilts[2]), pwm, 2 * [are_rates])

    # Commands of the high-level commander.

    def _groups(self, data: bytes) -> flight.Setpoint:
        return flight.SetGroups(*_unpacked("<B", data))

    def _vertical(self, kind: _Vertical, data: bytes) -> flight.Setpoint:
        group, height, duration = _unpacked("<Bff", data)
        return kind(height, duration, 0.0, group)

    def _vertical_2(self, kind: _Vertical, data: bytes) -> flight.Setpoint:
        group, height, yaw, keeps_yaw, duration = _unpacked("<Bff?f", data)
        return kind(height, duration, math.nan if keeps_yaw else yaw, group)

    def _at_velocity(self, kind: _Vertical, usual: str, data: bytes) -> flight.Setpoint:
        """Decode a takeoff or landing at a velocity; 0 selects that of the parameter `usual`."""
        group, height, relative, yaw, keeps_yaw, velocity = _unpacked("<Bf?f?f", data)
        heading = math.nan if keeps_yaw else yaw
        velocity = velocity if velocity > 0 else float(self.parameter(usual))
        return kind(height, 0.0, heading, group, velocity=velocity, relative=relative)

    def _stop(self, data: bytes) -> flight.Setpoint:
        kind = flight.Stop if self.gentle else flight.HighLevelStop
        return kind(*_unpacked("<B", data))

    def _rest(self, data: bytes) -> flight.Setpoint:
        del data
        return flight.Stop() if self.gentle else self._attitude(0.0, 0.0, 0.0, 0.0)

    def _go_to(self, data: bytes) -> flight.Setpoint:
        group, relative, x, y, z, yaw, duration = _unpacked("<B?fffff", data)
        return flight.GoTo((x, y, z), yaw, duration, relative, group)

    def _go_to_2(self, data: bytes) -> flight.Setpoint:
        group, relative, linear, x, y, z, yaw, duration = _unpacked("<B??fffff", data)
        return flight.GoTo((x, y, z), yaw, duration, relative, group, linear=linear)

    def _spiral(self, data: bytes) -> flight.Setpoint:
        group, sideways, clockwise, angle, begin, end, ascent, time = _unpacked("<B??fffff", data)
        return flight.Spiral(angle, begin, end, ascent, time, sideways, clockwise, group)

    def _trajectory(self, data: bytes) -> flight.Setpoint:
        group, relative, backwards, number, scale = _unpacked("<B??Bf", data)
        return self._flown(number, scale, backwards, relative, False, group)

    def _trajectory_2(self, data: bytes) -> flight.Setpoint:
        group, relative, turned, backwards, number, scale = _unpacked("<B???Bf", data)
        return self._flown(number, scale, backwards, relative, turned, group)

    def _flown(
        self, number: int, scale: float, backwards: bool, relative: bool, turned: bool, group: int
    ) -> flight.Setpoint:
        if self.trajectories.is_compressed(number):
            if scale != 1 or backwards:
                raise ValueError("a compressed trajectory is flown forwards, with time scale 1")
            turned = False
        return flight.FlyTrajectory(
            self.trajectories.trajectory(number),
            timescale=scale,
            reversed=backwards,
            relative=relative,
            group_mask=group,
            relative_yaw=turned,
        )

    def _define(self, data: bytes) -> None:
        number, location, kind, offset, n_pieces = _unpacked("<BBBIB", data)
        if location != 1:
            raise ValueError(f"trajectory {number} is at the unknown location {location}")
        self.trajectories.define(number, kind, offset, n_pieces)


def _unpacked(form: str, data: bytes) -> tuple[Any, ...]:
    """Unpack all of a packet's data.

    Raises:
        ValueError: The data has another length.
    """
    if len(data) != struct.calcsize(form):
        raise ValueError(f"expected {struct.calcsize(form)} bytes of data, got {len(data)}")
    return struct.unpack(form, data)


_GENERIC: dict[int, Callable[[Decoder, bytes], flight.Setpoint]] = {
    0: Decoder._rest,
    1: lambda decoder, data: decoder._velocity(data, -1),
    2: lambda decoder, data: decoder._z_distance(data, -1),
    3: Decoder._remote_control,
    4: Decoder._alt_hold,
    5: lambda decoder, data: decoder._hover(data, -1),
    6: Decoder._full_state,
    7: Decoder._position,
    8: Decoder._velocity,
    9: Decoder._z_distance,
    10: Decoder._hover,
    11: Decoder._manual,
}
_HIGH_LEVEL: dict[int, Callable[[Decoder, bytes], flight.Setpoint | None]] = {
    0: Decoder._groups,
    1: lambda decoder, data: decoder._vertical(flight.Takeoff, data),
    2: lambda decoder, data: decoder._vertical(flight.Land, data),
    3: Decoder._stop,
    4: Decoder._go_to,
    5: Decoder._trajectory,
    6: Decoder._define,
    7: lambda decoder, data: decoder._vertical_2(flight.Takeoff, data),
    8: lambda decoder, data: decoder._vertical_2(flight.Land, data),
    9: lambda decoder, data: decoder._at_velocity(flight.Takeoff, "hlCommander.vtoff", data),
    10: lambda decoder, data: decoder._at_velocity(flight.Land, "hlCommander.vland", data),
    11: Decoder._spiral,
    12: Decoder._go_to_2,
    13: Decoder._trajectory_2,
}
