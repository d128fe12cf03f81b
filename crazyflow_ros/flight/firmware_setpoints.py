"""Setpoints that reach the controllers unchanged, as those of the Crazyflie's firmware do.

No planner stands in between: a position a metre away is an error of a metre. Silence changes
nothing here, either: it is the supervisor of the firmware that levels a drone out and stops it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan, remainder, tau

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.control.setpoint_modes import SetpointMode
from crazyflow_ros.flight.attitude_setpoints import AttitudeThrust
from crazyflow_ros.flight.plan import Attitude, Plan, Rules, StartState, Turn
from crazyflow_ros.flight.setpoint import Setpoint, StateSetpoint, no_motion
from crazyflow_ros.flight.stop_and_arm import NotifySetpointsStop, NullSetpoint
from crazyflow_ros.flight.streamed import (
    AltitudeHold,
    FullState,
    Hover,
    Position,
    Streamed,
    VelocityWorld,
)
from crazyflow_ros.scene.frames import quat_from_rpy, rpy

_VECTORS = {
    "pos": limits.POSITION,
    "vel": limits.VELOCITY,
    "acc": limits.ACCELERATION,
    "rpy": limits.ANGLE,
    "rates": limits.ANGULAR_VELOCITY,
}
_NOTHING = (0.0, 0.0, 0.0)
_LEVELLED = {
    SetpointMode.state: SetpointMode.z_distance,
    SetpointMode.full_state: SetpointMode.z_distance,
    SetpointMode.hover: SetpointMode.z_distance,
    SetpointMode.velocity: SetpointMode.altitude_hold,
}


@dataclass(frozen=True)
class FirmwareSetpoint(StateSetpoint, Streamed):
    """A setpoint of the firmware (`setpoint_t`): values that the mode does not give are zero."""

    title = "a setpoint of the firmware"

    mode: SetpointMode
    pos: ArrayLike = _NOTHING
    """(3,) m, world frame; of `z_distance` and `hover` only the height."""
    vel: ArrayLike = _NOTHING
    """(3,) m/s, in the frame of the mode."""
    acc: ArrayLike = _NOTHING
    """(3,) m/s^2, world frame, without gravity."""
    rpy: ArrayLike = _NOTHING
    """(3,) roll, pitch, yaw [rad]; the yaw counts only in the two modes of states."""
    rates: ArrayLike = _NOTHING
    """(3,) body rates [rad/s]; the last one is the yaw rate of modes that turn."""
    thrust: float = 0.0
    """Collective, N."""
    are_rates: tuple[bool, bool] = (False, False)
    """Whether roll and pitch follow `rates`; only of `attitude`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", SetpointMode(self.mode))
        for name, limit in _VECTORS.items():
            values = limits.vector(name, getattr(self, name), (3,), limit)
            object.__setattr__(self, name, values)
        if limits.number("thrust", self.thrust, limits.FORCE) < 0:
            raise ValueError(f"thrust must not be negative, got {self.thrust:g} N")
        object.__setattr__(self, "are_rates", tuple(map(bool, self.are_rates)))

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to pass the values on unchanged; without thrust, a drone on the floor stays idle."""
        del rules
        roll, pitch, yaw = np.asarray(self.rpy).tolist()
        turn = float(np.asarray(self.rates)[2])
        heading = remainder(float(start.reference.pos[3]), tau)
        if self.mode is SetpointMode.attitude:
            if start.state.stands and self.thrust == 0:
                return no_motion(start, start.state)
            if self.are_rates[0]:
                roll = float(np.asarray(self.rates)[0])
            if self.are_rates[1]:
                pitch = float(np.asarray(self.rates)[1])
            held = Attitude(roll, pitch, heading, turn, self.thrust, self.are_rates)
            return Plan(held=held, bounded=False)
        parts = (
            self.pos,
            self.vel,
            self.acc,
            quat_from_rpy(np.array([roll, pitch, yaw])),
            self.rates,
        )
        numbers = np.concatenate(parts)
        if self.mode in (SetpointMode.state, SetpointMode.full_state):
            return Plan(command=numbers, mode=self.mode, bounded=False)
        return Plan(held=Turn(self.mode, numbers, roll, pitch, heading, turn), bounded=False)

    def levelled(self) -> FirmwareSetpoint:
        """Return this setpoint, level and without turning, as the supervisor replaces it.

        Height, vertical velocity or thrust stay (`supervisorOverrideSetpoint`).
        """
        climb = float(np.asarray(self.vel)[2])
        mode = _LEVELLED.get(self.mode, self.mode)
        keeps = mode is SetpointMode.altitude_hold
        return replace(
            self,
            mode=mode,
            vel=(0.0, 0.0, climb if keeps else 0.0),
            acc=_NOTHING,
            rpy=_NOTHING,
            rates=_NOTHING,
            are_rates=(False, False),
        )


def unplanned(setpoint: Setpoint) -> Setpoint:
    """Return a setpoint as the firmware passes it on: unchanged, without a planner in between.

    Other setpoints, such as a takeoff, are returned as they are.
    """
    mode, turn = SetpointMode, (0.0, 0.0, getattr(setpoint, "yaw_rate", 0.0))
    match setpoint:
        case Position(pos, yaw):
            return FirmwareSetpoint(mode.state, pos, rpy=(0.0, 0.0, yaw))
        case FullState(pos, vel, acc, attitude, rates):
            yaw = float(rpy(np.asarray(attitude))[2])
            return FirmwareSetpoint(mode.full_state, pos, vel, acc, (0.0, 0.0, yaw), rates)
        case VelocityWorld(vel):
            return FirmwareSetpoint(mode.velocity, vel=vel, rates=turn)
        case Hover(vel, _, height):
            horizontal = (*np.asarray(vel).tolist(), 0.0)
            return FirmwareSetpoint(mode.hover, (0.0, 0.0, height), horizontal, rates=turn)
        case AltitudeHold(roll, pitch, _, height, climb):
            tilt = (roll, pitch, 0.0)
            if isnan(height):
                climbing = (0.0, 0.0, climb)
                return FirmwareSetpoint(mode.altitude_hold, vel=climbing, rpy=tilt, rates=turn)
            return FirmwareSetpoint(mode.z_distance, (0.0, 0.0, height), rpy=tilt, rates=turn)
        case AttitudeThrust(roll, pitch, _, thrust, roll_is_rate, pitch_is_rate):
            are_rates, given = (roll_is_rate, pitch_is_rate), (roll, pitch)
            angles = [0.0 if is_rate else x for x, is_rate in zip(given, are_rates)]
            rates = [x if is_rate else 0.0 for x, is_rate in zip(given, are_rates)]
            return FirmwareSetpoint(
                mode.attitude,
                rpy=(*angles, 0.0),
                rates=(*rates, turn[2]),
                thrust=thrust,
                are_rates=are_rates,
            )
        case NotifySetpointsStop(group_mask):
            return NullSetpoint(group_mask)
    return setpoint
