"""Setpoints of pose and velocity, to which the governor leads the drone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.governor import at_velocity, descent, to_pose, to_rest
from crazyflow_ros.flight.moving_goal import follow, patience
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, StartState
from crazyflow_ros.flight.profile import Profile
from crazyflow_ros.flight.setpoint import (
    CLEARANCE,
    TOUCHDOWN,
    Setpoint,
    StateSetpoint,
    no_motion,
)

LAPSE_MARGIN = 0.1
"""Time [s] for which a course at a velocity continues after it has lapsed."""
_TAKEOFF_TOLERANCE = 0.01  # m below the height of a takeoff, at which it is complete
_GENTLE = 0.3  # of the jerk, with which a drone flies to places that replace one another
_ABOVE = 0.01  # m and m/s, horizontally, within which a drone is above its goal


@dataclass(frozen=True)
class Pose(StateSetpoint):
    """Fly to a position and heading, and stay there. A drone on the floor takes off first."""

    title = "a pose"

    pos: ArrayLike
    """(3,) m, world frame. The drone lands if it is on the floor."""
    yaw: float
    """rad; NaN keeps the heading."""

    def __post_init__(self) -> None:
        pos = limits.vector("position", self.pos, (3,), limits.POSITION)
        object.__setattr__(self, "pos", pos)
        if not isnan(self.yaw):
            object.__setattr__(self, "yaw", limits.number("yaw", self.yaw, limits.ANGLE))

    def is_same(self, other: Pose) -> bool:
        """Return whether another pose has the same place and heading."""
        same_yaw = self.yaw == other.yaw or (isnan(self.yaw) and isnan(other.yaw))
        return same_yaw and bool(np.array_equal(self.pos, other.pos))

    def lapsed(self) -> Setpoint:
        """Stop at the last pose of a stream, which the drone has followed so far."""
        return self

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a climb, a horizontal flight clear of the floor, and a descent.

        High enough, a drone follows a stream of poses with the velocity of their goal.
        """
        reference, envelope = start.reference, rules.envelope
        x, y, z = np.asarray(self.pos).tolist()
        yaw = float(reference.pos[3]) if isnan(self.yaw) else self.yaw
        clear = rules.rest_height + CLEARANCE
        is_high = not start.state.stands and min(z, float(reference.pos[2])) >= clear
        follows = is_high and len(start.stream) > 1
        if follows and (way := follow(reference, start.stream, envelope)) is not None:
            return Plan(way.course, timeout=patience(start.stream), pace=way.pace)
        if start.restless:
            envelope = replace(envelope, jerk=_gentle(reference, envelope))
        lands = z < rules.rest_height + TOUCHDOWN
        # A drone that is already above its goal continues to descend when the pose is repeated.
        away = max(abs(float(reference.pos[0]) - x), abs(float(reference.pos[1]) - y))
        is_over = away < _ABOVE and float(np.abs(reference.vel[:2]).max()) < _ABOVE
        above = not start.state.stands and is_over
        lowest = rules.rest_height if above else clear
        course = to_pose(reference, (x, y, max(z, lowest)), yaw, envelope)
        if not above and (start.state.stands or reference.pos[2] < clear):
            course = _after_lifting(course, clear)
        if z < clear and not above:
            there = Reference.at_rest((x, y, clear), float(course.at(course.end).pos[3]))
            goal = (x, y, max(z, rules.rest_height))
            course = course.then(to_pose(there, goal, yaw, envelope))
        return Plan(
            course,
            during=FlightState.taking_off if start.state.stands else FlightState.flying,
            after=FlightState.landed if lands else FlightState.flying,
            aloft=course.rises(clear) if start.state.stands else 0.0,
        )


@dataclass(frozen=True)
class Goal(StateSetpoint):
    """Fly to a place at the present height, or from the floor at `Rules.takeoff_height`."""

    title = "a goal pose"

    place: ArrayLike
    """(2,) x and y, world frame, m."""
    yaw: float
    """rad; NaN keeps the heading."""

    def __post_init__(self) -> None:
        place = limits.vector("position", self.place, (2,), limits.POSITION)
        object.__setattr__(self, "place", place)
        if not isnan(self.yaw):
            limits.number("yaw", self.yaw, limits.ANGLE)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan as for `Pose`."""
        height = float(start.reference.pos[2])
        if start.state.stands or height < rules.rest_height + CLEARANCE:
            height = rules.takeoff_height
        return Pose((*np.asarray(self.place), height), self.yaw).plan(start, rules)


@dataclass(frozen=True)
class Velocity(StateSetpoint):
    """Fly at a velocity and turn at a rate; hover if it is not repeated in time.

    A drone on the floor takes off to `Rules.takeoff_height`; one that descends to the floor lands.
    """

    title = "a velocity"

    vel: ArrayLike
    """(3,) m/s in the heading frame: x ahead, y left, z up. It turns with the heading."""
    yaw_rate: float
    """rad/s."""

    def __post_init__(self) -> None:
        vel = limits.vector("velocity", self.vel, (3,), limits.VELOCITY)
        rate = limits.number("yaw rate", self.yaw_rate, limits.ANGULAR_VELOCITY)
        object.__setattr__(self, "vel", vel)
        object.__setattr__(self, "yaw_rate", rate)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a course at the velocity, which lapses."""
        vx, vy, vz = np.asarray(self.vel).tolist()
        at, stands = start.reference, start.state.stands
        if stands and not (vx or vy or vz or self.yaw_rate):
            return no_motion(start, start.state)
        if stands and vz < 0:
            return no_motion(start, start.state, "stands on the floor and cannot go down")
        rises = stands or start.state is FlightState.taking_off
        if rises and vz >= 0 and at.pos[2] < rules.takeoff_height - _TAKEOFF_TOLERANCE:
            return self._rising(start, rules)
        if vz < 0:
            return self._falling(start, rules)
        return self._course(at, rules, (vx, vy, vz))

    def _rising(self, start: StartState, rules: Rules) -> Plan:
        """Take off; near the floor, the climb continues without further setpoints."""
        at, envelope, height = start.reference, rules.envelope, rules.takeoff_height
        if at.pos[2] < rules.rest_height + CLEARANCE:
            course = to_pose(at, (*at.pos[:2], height), float(at.pos[3]), envelope)
            return Plan(course, during=FlightState.taking_off)
        up = descent(at, height, envelope.climb, envelope)
        plan = self._course(at, rules, np.asarray(self.vel).tolist(), up)
        return replace(plan, during=FlightState.taking_off)

    def _falling(self, start: StartState, rules: Rules) -> Plan:
        """Descend, straight down near the floor, and land."""
        at, (vx, vy, vz) = start.reference, np.asarray(self.vel).tolist()
        if at.pos[2] < rules.rest_height + TOUCHDOWN:
            course = to_rest(at, rules.envelope)
            return Plan(course, during=FlightState.landing, after=FlightState.landed)
        down = descent(at, rules.rest_height, vz, rules.envelope)
        return self._course(at, rules, (vx, vy, 0.0), down)

    def _course(
        self, at: Reference, rules: Rules, vel: Sequence[float], z: Profile | None = None
    ) -> Plan:
        """Plan a course at a velocity; near the floor it is vertical.

        A drone that stands cannot turn, and the attempt would take thrust from its rotors.
        """
        timeout, turn = rules.velocity_timeout, self.yaw_rate
        if at.pos[2] < rules.rest_height + CLEARANCE:
            vel, turn = (0.0, 0.0, vel[2]), 0.0
        course = at_velocity(at, vel, turn, timeout + LAPSE_MARGIN, rules.envelope, z)
        return Plan(course, timeout=timeout)


def _gentle(reference: Reference, envelope: Envelope) -> float:
    """Return the jerk with which a drone flies to one of many places [m/s^3].

    It ends the present acceleration before that adds half of the envelope's speed.
    """
    acc = float(np.linalg.norm(reference.acc[:3]))
    return min(max(_GENTLE * envelope.jerk, acc**2 / envelope.speed), envelope.jerk)


def _after_lifting(course: Course, clear: float) -> Course:
    """Delay all axes except z until the drone is at a height."""
    high = course.rises(clear)
    return course.delayed((high, high, 0.0, high))
