"""Streamed setpoints, with the priority and the time-outs of the Crazyflie's firmware.

A program sends them many times a second. The first one stops the planner, whose commands are
refused until `NotifySetpointsStop` ends the stream. A drone that receives no more setpoints levels
out and then stops its rotors; one that holds its height continues to hover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan, pi, tan

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.flight.governor import at_velocity, descent, to_pose, to_rest
from crazyflow_ros.flight.high_level import FlyTrajectory, GoTo, Land, Spiral, Takeoff
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, StartState
from crazyflow_ros.flight.pose_and_velocity import LAPSE_MARGIN, Pose, Velocity
from crazyflow_ros.flight.setpoint import (
    CLEARANCE,
    TOUCHDOWN,
    Brake,
    Setpoint,
    StateSetpoint,
    no_motion,
)
from crazyflow_ros.flight.stop_and_arm import HighLevelStop, Stop

LEVEL_TIMEOUT = 0.5
"""Time [s] without a streamed setpoint after which a drone levels out or brakes."""
STOP_TIMEOUT = 2.0
"""Time [s] without a streamed setpoint after which its rotors stop."""
_NO_DRAG = 1e-6  # 1/s
HIGH_LEVEL = (Takeoff, Land, GoTo, Spiral, FlyTrajectory, HighLevelStop)
"""Setpoints that are refused while a drone follows streamed setpoints."""


class Streamed(Setpoint):
    """A setpoint that is repeated as long as the drone has to follow it."""


@dataclass(frozen=True)
class Hover(StateSetpoint, Streamed):
    """Fly at a horizontal velocity and a height; hover if it is not repeated in time.

    A drone on the floor takes off to the height; at a height on the floor, the drone lands.
    """

    title = "a hover setpoint"

    vel: ArrayLike
    """(2,) m/s in the heading frame: x ahead, y left. It turns with the heading."""
    yaw_rate: float
    """rad/s."""
    height: float
    """Height of the centre of mass above the floor [m]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "vel", limits.vector("velocity", self.vel, (2,), limits.VELOCITY))
        limits.number("yaw rate", self.yaw_rate, limits.ANGULAR_VELOCITY)
        limits.number("height", self.height, limits.POSITION)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a course at the velocity and height, which lapses; near the floor it is vertical."""
        at, stands, envelope = start.reference, start.state.stands, rules.envelope
        height = max(rules.floor + self.height, rules.rest_height)
        if height < rules.rest_height + TOUCHDOWN:
            if stands:
                return no_motion(start, start.state)
            if at.pos[2] < rules.rest_height + TOUCHDOWN:
                course = to_rest(at, envelope)
                return Plan(course, during=FlightState.landing, after=FlightState.landed)
        rises = at.pos[2] < height - TOUCHDOWN and (stands or start.state is FlightState.taking_off)
        during = FlightState.taking_off if rises else FlightState.flying
        vel: Sequence[float] = np.asarray(self.vel).tolist()
        turn = self.yaw_rate
        if at.pos[2] < rules.rest_height + CLEARANCE:
            if rises:  # near the floor, the climb continues without further setpoints
                course = to_pose(at, (*at.pos[:2], height), float(at.pos[3]), envelope)
                return Plan(course, during=during)
            vel, turn = (0.0, 0.0), 0.0
        z = descent(at, height, envelope.climb, envelope)
        timeout = rules.velocity_timeout
        course = at_velocity(at, (*vel, 0.0), turn, timeout + LAPSE_MARGIN, envelope, z)
        return Plan(course, during=during, timeout=timeout)

    def lapsed(self) -> Setpoint:
        """Hover where the drone comes to rest."""
        return HoverOn()


@dataclass(frozen=True)
class AltitudeHold(StateSetpoint, Streamed):
    """Tilt, and hold a height or a climb rate; hover if it is not repeated in time.

    The drone flies at the speed at which drag balances the tilt, within its envelope.
    """

    title = "an altitude-hold setpoint"

    roll: float
    """rad, positive to the right."""
    pitch: float
    """rad, positive is forward."""
    yaw_rate: float
    """rad/s, counter-clockwise."""
    height: float = nan
    """Height of the centre of mass above the floor [m]; NaN flies at `climb` instead."""
    climb: float = 0.0
    """m/s, upwards."""

    def __post_init__(self) -> None:
        for name in ("roll", "pitch"):
            if abs(limits.number(name, getattr(self, name), limits.ANGLE)) >= pi / 2:
                raise ValueError(f"{name} must be within 1.57 rad, got {getattr(self, name):g}")
        limits.number("yaw rate", self.yaw_rate, limits.ANGULAR_VELOCITY)
        limits.number("climb", self.climb, limits.VELOCITY)
        if not isnan(self.height):
            limits.number("height", self.height, limits.POSITION)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan as for `Hover` or `Velocity`."""
        fastest = rules.envelope.speed
        vel = [
            min(max(rules.gravity * tan(tilt) / max(float(drag), _NO_DRAG), -fastest), fastest)
            for tilt, drag in ((self.pitch, rules.drag[0]), (-self.roll, rules.drag[1]))
        ]
        if isnan(self.height):
            return Velocity((*vel, self.climb), self.yaw_rate).plan(start, rules)
        return Hover(vel, self.yaw_rate, self.height).plan(start, rules)

    def lapsed(self) -> Setpoint:
        """Hover where the drone comes to rest."""
        return HoverOn()


@dataclass(frozen=True)
class HoverOn(Brake, Streamed):
    """Come to rest and wait for the next setpoint, after a `Hover` or `AltitudeHold` has lapsed."""

    title = "an order to hover"


@dataclass(frozen=True)
class HoldHeight(StateSetpoint, Streamed):
    """Come to rest horizontally, after a `Position`, `VelocityWorld` or `FullState` has lapsed.

    The firmware levels such a drone, and keeps the height or the vertical velocity of its setpoint
    (`supervisor.c`): drag alone would stop it.
    """

    title = "an order to hold the height"

    height: float = nan
    """Height of the centre of mass in the world [m]; NaN flies at `climb` instead."""
    climb: float = 0.0
    """m/s, upwards."""

    when_lapsed = f"no setpoint for {STOP_TIMEOUT:g} s: rotors stopped"

    def __post_init__(self) -> None:
        limits.number("climb", self.climb, limits.VELOCITY)
        if not isnan(self.height):
            limits.number("height", self.height, limits.POSITION)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a course that brakes and keeps the height, until the rotors stop."""
        at, envelope, z = start.reference, rules.envelope, None
        if not isnan(self.height):
            z = descent(at, max(self.height, rules.rest_height), envelope.climb, envelope)
        elif self.climb < 0:
            z = descent(at, rules.rest_height, self.climb, envelope)
        timeout = STOP_TIMEOUT - LEVEL_TIMEOUT
        vel = (0.0, 0.0, self.climb)
        course = at_velocity(at, vel, 0.0, timeout + LAPSE_MARGIN, envelope, z, in_world=True)
        return Plan(course, timeout=timeout)

    def lapsed(self) -> Setpoint:
        """Stop the rotors."""
        return Stop()


@dataclass(frozen=True)
class Position(StateSetpoint, Streamed):
    """Fly to a position and heading as for `Pose`; hold the height if it is not repeated."""

    title = "a position setpoint"

    pos: ArrayLike
    """(3,) m, world frame. The drone lands if it is on the floor."""
    yaw: float
    """rad."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos", limits.vector("position", self.pos, (3,), limits.POSITION))
        limits.number("yaw", self.yaw, limits.ANGLE)

    def is_same(self, other: Position) -> bool:
        """Return whether another setpoint has the same place and heading."""
        return self.yaw == other.yaw and bool(np.array_equal(self.pos, other.pos))

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan as for `Pose`; a drone that stands at the floor stays there."""
        pos = np.asarray(self.pos)
        if start.state.stands and pos[2] < rules.rest_height + TOUCHDOWN:
            return no_motion(start, start.state)
        return replace(Pose(pos, self.yaw).plan(start, rules), timeout=LEVEL_TIMEOUT)

    def lapsed(self) -> Setpoint:
        """Brake at the height of the position."""
        return HoldHeight(float(np.asarray(self.pos)[2]))


@dataclass(frozen=True)
class VelocityWorld(StateSetpoint, Streamed):
    """Fly at a velocity in the world frame; keep only the vertical one if it is not repeated.

    A drone on the floor lifts off if the velocity points up; one that descends to the floor lands.
    """

    title = "a velocity setpoint"

    vel: ArrayLike
    """(3,) m/s, world frame."""
    yaw_rate: float
    """rad/s."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "vel", limits.vector("velocity", self.vel, (3,), limits.VELOCITY))
        limits.number("yaw rate", self.yaw_rate, limits.ANGULAR_VELOCITY)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a course at the velocity, which lapses; near the floor it is vertical."""
        at, envelope, stands = start.reference, rules.envelope, start.state.stands
        vx, vy, vz = np.asarray(self.vel).tolist()
        if stands and vz <= 0:
            return no_motion(start, start.state)
        if vz < 0 and at.pos[2] < rules.rest_height + TOUCHDOWN:
            course = to_rest(at, envelope)
            return Plan(course, during=FlightState.landing, after=FlightState.landed)
        clear = at.pos[2] >= rules.rest_height + CLEARANCE
        vel, yaw_rate = ((vx, vy, vz), self.yaw_rate) if clear else ((0.0, 0.0, vz), 0.0)
        down = descent(at, rules.rest_height, vz, envelope) if vz < 0 else None
        duration = LEVEL_TIMEOUT + LAPSE_MARGIN
        course = at_velocity(at, vel, yaw_rate, duration, envelope, down, in_world=True)
        rises = not clear and (stands or start.state is FlightState.taking_off)
        during = FlightState.taking_off if rises else FlightState.flying
        return Plan(course, during=during, timeout=LEVEL_TIMEOUT)

    def lapsed(self) -> Setpoint:
        """Brake at the same vertical velocity."""
        return HoldHeight(climb=float(np.asarray(self.vel)[2]))


@dataclass(frozen=True)
class FullState(StateSetpoint, Streamed):
    """A state for the position controller, passed on unchanged: nothing bounds the flight."""

    title = "a full-state setpoint"

    pos: ArrayLike
    """(3,) m, world frame, as are the two below."""
    vel: ArrayLike
    """(3,) m/s."""
    acc: ArrayLike
    """(3,) m/s^2, without gravity."""
    attitude: ArrayLike
    """(4,) quaternion xyzw, of which only the yaw is used; or () yaw [rad]."""
    ang_vel: ArrayLike = (0.0, 0.0, 0.0)
    """(3,) rad/s, body frame."""

    def __post_init__(self) -> None:
        for name, what, limit in (
            ("pos", "position", limits.POSITION),
            ("vel", "velocity", limits.VELOCITY),
            ("acc", "acceleration", limits.ACCELERATION),
            ("ang_vel", "body rates", limits.ANGULAR_VELOCITY),
        ):
            values = limits.vector(what, getattr(self, name), (3,), limit)
            object.__setattr__(self, name, values)
        if np.ndim(self.attitude) == 0:
            half = limits.number("yaw", float(self.attitude), limits.ANGLE) / 2  # type: ignore[arg-type]
            quat = np.array([0.0, 0.0, np.sin(half), np.cos(half)])
        else:
            limits.unit_quaternion("attitude", self.attitude)
            quat = np.array(self.attitude, float)  # not normalised, so that a stored copy is equal
        object.__setattr__(self, "attitude", quat)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan to pass the state on unchanged; it lapses."""
        del start, rules
        quat = limits.unit_quaternion("attitude", self.attitude)
        parts = (self.pos, self.vel, self.acc, quat, self.ang_vel)
        return Plan(command=np.concatenate(parts), bounded=False, timeout=LEVEL_TIMEOUT)

    def lapsed(self) -> Setpoint:
        """Brake at the height of the state."""
        return HoldHeight(float(np.asarray(self.pos)[2]))
