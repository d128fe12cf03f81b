"""Setpoints of the Crazyflie's high-level commander: takeoff, land, go_to, spiral, trajectories."""

from __future__ import annotations

from cmath import exp
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, tau

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.governor import onto, to_rest
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, StartState
from crazyflow_ros.flight.planner import check_world, lengthened, spiral, straight_to, to_rest_at
from crazyflow_ros.flight.polynomial_trajectory import PolynomialTrajectory, checked_timescale
from crazyflow_ros.flight.setpoint import CLEARANCE, StateSetpoint, check_group

_DURATION = limits.Limit(1e3, "s")
_MIN_TAKEOFF_HEIGHT = 0.1  # m above the floor
_NO_THRUST = 1e-9  # m/s^2
_MAX_JUMP = 0.5  # m, a step of the position that the slowest drone survives


@dataclass(frozen=True)
class Takeoff(StateSetpoint):
    """Rise from the floor to a height, straight up."""

    title = "a take-off"

    height: float
    """Height of the centre of mass above the floor [m]."""
    duration: float = 0.0
    """s; longer if the drone cannot climb so fast."""
    yaw: float = float("nan")
    """rad; NaN keeps the heading."""
    group_mask: int = 0
    velocity: float = 0.0
    """Mean climb rate [m/s] that sets the duration, unless it is 0."""
    relative: bool = False
    """Whether the height counts from the present one."""

    def __post_init__(self) -> None:
        height = limits.number("height", self.height, limits.POSITION)
        if height < _MIN_TAKEOFF_HEIGHT:
            raise ValueError(f"height must be at least {_MIN_TAKEOFF_HEIGHT:g} m, got {height:g}")
        _check_high_level(self.duration, self.yaw, self.group_mask)
        _check_velocity(self.velocity, self.duration)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7, from the floor."""
        if not start.state.stands:
            raise ValueError(f"takeoff needs a drone that stands on the floor, it is {start.state}")
        x, y, z, _ = start.reference.pos.tolist()
        height = self.height + (z if self.relative else rules.floor)
        if height <= (stands := rules.rest_height):
            raise ValueError(f"takeoff to {height:g} m is too low: a drone rests at {stands:.2f} m")
        plan = _to_rest_at(start, rules, (x, y, height), self)
        return replace(plan, during=FlightState.taking_off)


@dataclass(frozen=True)
class Land(StateSetpoint):
    """Descend straight down to a height, and stop the rotors there."""

    title = "a landing"

    height: float = 0.0
    """Height of the centre of mass above the floor [m]; at least the resting height."""
    duration: float = 0.0
    """s; longer if the drone cannot descend so fast."""
    yaw: float = float("nan")
    """rad; NaN keeps the heading."""
    group_mask: int = 0
    velocity: float = 0.0
    """Mean rate of descent [m/s] that sets the duration, unless it is 0."""
    relative: bool = False
    """Whether the height counts down from the present one."""

    def __post_init__(self) -> None:
        limits.number("height", self.height, limits.POSITION)
        _check_high_level(self.duration, self.yaw, self.group_mask)
        _check_velocity(self.velocity, self.duration)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7."""
        if start.state.stands:
            raise ValueError(f"land needs a drone in the air, it is {start.state}")
        if start.state is FlightState.landing:
            raise ValueError("it is landing already")
        reference = start.reference
        height = rules.floor + self.height
        if self.relative:
            height = float(reference.pos[2]) - self.height
        moves = bool(np.any(reference.vel[:2]) or np.any(reference.acc[:2]))
        stopped = to_rest(reference, rules.envelope) if moves else None
        place = reference.pos if stopped is None else stopped.at(stopped.end).pos
        plan = _to_rest_at(start, rules, (*place[:2], max(height, rules.rest_height)), self)
        return replace(plan, during=FlightState.landing, after=FlightState.landed)


@dataclass(frozen=True)
class GoTo(StateSetpoint):
    """Fly to a position within a time."""

    title = "a go_to"

    pos: ArrayLike
    """(3,) m, world frame."""
    yaw: float
    """rad."""
    duration: float = 0.0
    """s; longer if the drone cannot fly so fast."""
    relative: bool = False
    """Whether to add position and yaw to the present reference."""
    group_mask: int = 0
    linear: bool = False
    """Whether to move at a constant velocity, which starts and ends with a jolt."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos", limits.vector("position", self.pos, (3,), limits.POSITION))
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7, or a straight line, that ends clear of the floor."""
        if start.state.stands:
            raise ValueError(f"go_to needs a drone in the air, it is {start.state}: takeoff first")
        at = start.reference.pos
        shift = at if self.relative else np.zeros(4)
        pos, yaw = np.asarray(self.pos) + shift[:3], self.yaw + float(shift[3])
        limits.vector("position", pos, (3,), limits.POSITION)
        pos[2], note = _clear(float(pos[2]), rules)
        yaw = float(at[3]) if isnan(yaw) else yaw
        way = straight_to if self.linear else to_rest_at
        bounds = rules.bounds(self.duration)
        at_first = _turning(start.reference, rules.gravity)
        course = way(at_first, pos, yaw, self.duration, bounds)
        return _plan(course, self.duration, note)


@dataclass(frozen=True)
class Spiral(StateSetpoint):
    """Fly around a point beside the drone within a time, from one radius to another.

    Position, velocity and acceleration at both ends are those of a spiral, with a polynomial of
    degree 7 in between; as in the firmware, it begins and ends with a jolt.
    """

    title = "a spiral"

    angle: float
    """rad, at most one turn, by which the drone also yaws; a negative one is flown backwards."""
    radius: float
    """Distance of the point [m]; it is to the left, or to the right if `clockwise`."""
    end_radius: float
    """m."""
    ascent: float = 0.0
    """m."""
    duration: float = 0.0
    """s; longer if the drone cannot fly so fast."""
    sideways: bool = False
    """Whether the point is behind the drone instead, or ahead of it if `clockwise`."""
    clockwise: bool = False
    group_mask: int = 0

    def __post_init__(self) -> None:
        limits.number("angle", self.angle, limits.ANGLE)
        limits.number("radius", self.radius, limits.POSITION)
        limits.number("end radius", self.end_radius, limits.POSITION)
        limits.number("ascent", self.ascent, limits.POSITION)
        _check_high_level(self.duration, 0.0, self.group_mask)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7 that ends clear of the floor."""
        if start.state.stands:
            raise ValueError(f"spiral needs a drone in the air, it is {start.state}: takeoff first")
        at = start.reference.pos.tolist()
        angle = min(max(self.angle, -tau), tau)
        radii = max(self.radius, 0.0), max(self.end_radius, 0.0)
        height, note = _clear(at[2] + self.ascent, rules)
        limited = ""
        if (angle, *radii) != (self.angle, self.radius, self.end_radius):
            limited = f"turns by {angle:.2f} rad at radii of {radii[0]:g} to {radii[1]:g} m"
        side = 1 if self.clockwise else -1
        outward = side * exp(1j * at[3]) * (-1 if self.sideways else 1j)
        piece = partial(spiral, at, outward, radii, -side * angle, height - at[2])
        course = lengthened(piece, self.duration, rules.bounds(self.duration))
        check_world(np.array([course.end]), piece(course.end)[None])
        return _plan(course, self.duration, limited, note)


@dataclass(frozen=True)
class FlyTrajectory(StateSetpoint):
    """Fly an uploaded trajectory, from the drone's present position or from its own start."""

    title = "a start of an uploaded trajectory"

    trajectory: PolynomialTrajectory
    timescale: float = 1.0
    """2 takes twice as long."""
    reversed: bool = False
    """Whether to fly from the end to the start."""
    relative: bool = True
    """Whether to shift the trajectory to start at the drone's reference position."""
    group_mask: int = 0
    relative_yaw: bool = False
    """Whether to turn a relative trajectory about its origin to start at the drone's heading."""

    def __post_init__(self) -> None:
        checked_timescale(self.timescale)
        check_group(self.group_mask)

    def plan(self, start: StartState, rules: Rules) -> Plan:
        """Plan the pieces in order; the drone hovers at the end.

        A drone that moves otherwise than the trajectory begins flies onto it within its envelope;
        with `Rules.exact_durations` it jumps there, as in the firmware.
        """
        if start.state.stands:
            raise ValueError(f"a trajectory needs a drone in the air, it is {start.state}")
        course = self.trajectory.course(
            start.reference,
            timescale=self.timescale,
            reversed=self.reversed,
            relative=self.relative,
            relative_yaw=self.relative_yaw,
        )
        away = float(np.linalg.norm(course.at(0.0).pos[:3] - start.reference.pos[:3]))
        if away > _MAX_JUMP:
            remedy = "go_to its start first, or fly it relative"
            if self.relative:
                remedy = "relative_yaw turns it about its origin, where it has to start"
            raise ValueError(
                f"the trajectory starts {away:.2f} m from the reference position, more than "
                f"{_MAX_JUMP:g} m: {remedy}"
            )
        turns = self.relative and not self.reversed
        note = ""
        if self.relative_yaw and not turns:
            note = "ignores relative_yaw: the trajectory is reversed or not relative"
        if not rules.exact_durations:
            course = onto(start.reference, course, rules.envelope)
        return Plan(course, bounded=False, note=note)


def _check_high_level(duration: float, yaw: float, group_mask: int) -> None:
    if limits.number("duration", duration, _DURATION) < 0:
        raise ValueError(f"duration must not be negative, got {duration:g} s")
    if not isnan(yaw):
        limits.number("yaw", yaw, limits.ANGLE)
    check_group(group_mask)


def _check_velocity(velocity: float, duration: float) -> None:
    if limits.number("velocity", velocity, limits.VELOCITY) < 0:
        raise ValueError(f"velocity must not be negative, got {velocity:g} m/s")
    if velocity and duration:
        raise ValueError(f"give a duration or a velocity, got {duration:g} s and {velocity:g} m/s")


def _turning(start: Reference, gravity: float) -> Reference:
    """Return a motion whose turn continues as in the firmware.

    The firmware uses the body rate about z as the yaw rate, although that is larger if the drone is
    tilted, and assumes no acceleration.
    """
    thrust = start.acc[:3] + np.array([0.0, 0.0, gravity])
    upright = float(thrust[2] / max(np.linalg.norm(thrust), _NO_THRUST))
    return Reference(start.pos, start.vel * (1, 1, 1, upright), start.acc * (1, 1, 1, 0))


def _clear(height: float, rules: Rules) -> tuple[float, str]:
    """Return a height clear of the floor, and a note if it differs from the given one."""
    lowest = rules.rest_height + CLEARANCE
    note = f"stays at {lowest:.2f} m, clear of the floor" if height < lowest else ""
    return max(height, lowest), note


def _to_rest_at(
    start: StartState, rules: Rules, pos: tuple[float, float, float], setpoint: Takeoff | Land
) -> Plan:
    reference = start.reference
    limits.vector("position", pos, (3,), limits.POSITION)
    yaw = float(reference.pos[3]) if isnan(setpoint.yaw) else setpoint.yaw
    duration = setpoint.duration
    if setpoint.velocity:
        duration = abs(pos[2] - float(reference.pos[2])) / setpoint.velocity
        limits.number("duration", duration, _DURATION)
    bounds = rules.bounds(duration, rises=start.state.stands)
    return _plan(to_rest_at(reference, pos, yaw, duration, bounds), duration)


def _plan(course: Course, duration: float, *notes: str) -> Plan:
    """Plan to follow a course; add the notes that are not empty, and one if it takes longer."""
    longer = ""
    if course.end > duration > 0:
        longer = f"takes {course.end:.2f} s instead of {duration:g} s, the fastest allowed"
    return Plan(course, note="; ".join(filter(None, (*notes, longer))))
