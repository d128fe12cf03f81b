"""Setpoints of the Crazyflie's high-level commander: takeoff, land, go_to, trajectories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.flight.governor import to_rest
from crazyflow_ros.flight.plan import FlightState, Plan, Rules, Start
from crazyflow_ros.flight.planner import PolynomialTrajectory, checked_timescale, to_rest_at
from crazyflow_ros.flight.setpoint import CLEARANCE, StateSetpoint, check_group

_DURATION = limits.Limit(1e3, "s")
_MIN_TAKEOFF_HEIGHT = 0.1  # m above the floor
_MAX_JUMP = 0.5  # m, a step of the position that the slowest drone survives


@dataclass(frozen=True)
class Takeoff(StateSetpoint):
    """Rise from the floor to a height, straight up."""

    height: float
    """Height of the centre of mass above the floor z = 0 [m]."""
    duration: float = 0.0
    """s; longer if the drone cannot climb so fast."""
    yaw: float = float("nan")
    """rad; NaN keeps the heading."""
    group_mask: int = 0

    def __post_init__(self) -> None:
        height = limits.number("height", self.height, limits.POSITION)
        if height < _MIN_TAKEOFF_HEIGHT:
            raise ValueError(f"height must be at least {_MIN_TAKEOFF_HEIGHT:g} m, got {height:g}")
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7, from the floor."""
        if not start.state.stands:
            raise ValueError(f"takeoff needs a drone that stands on the floor, it is {start.state}")
        plan = _to_rest_at(start, rules, (*start.reference.pos[:2], self.height), self)
        return replace(plan, during=FlightState.taking_off)


@dataclass(frozen=True)
class Land(StateSetpoint):
    """Descend straight down to a height, and stop the rotors there."""

    height: float = 0.0
    """Height of the centre of mass above the floor z = 0 [m]; at least the resting height."""
    duration: float = 0.0
    """s; longer if the drone cannot descend so fast."""
    yaw: float = float("nan")
    """rad; NaN keeps the heading."""
    group_mask: int = 0

    def __post_init__(self) -> None:
        limits.number("height", self.height, limits.POSITION)
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7."""
        if start.state.stands:
            raise ValueError(f"land needs a drone in the air, it is {start.state}")
        if start.state is FlightState.landing:
            raise ValueError("it is landing already")
        height = max(self.height, rules.rest_height)
        reference = start.reference
        moves = bool(np.any(reference.vel[:2]) or np.any(reference.acc[:2]))
        stopped = to_rest(reference, rules.envelope) if moves else None
        place = reference.pos if stopped is None else stopped.at(stopped.end).pos
        plan = _to_rest_at(start, rules, (*place[:2], height), self)
        return replace(plan, during=FlightState.landing, after=FlightState.landed)


@dataclass(frozen=True)
class GoTo(StateSetpoint):
    """Fly to a position within a time."""

    pos: ArrayLike
    """(3,) m, world frame."""
    yaw: float
    """rad."""
    duration: float = 0.0
    """s; longer if the drone cannot fly so fast."""
    relative: bool = False
    """Whether to add position and yaw to the present reference."""
    group_mask: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos", limits.vector("position", self.pos, (3,), limits.POSITION))
        _check_high_level(self.duration, self.yaw, self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Plan a polynomial of degree 7 that ends clear of the floor."""
        if start.state.stands:
            raise ValueError(f"go_to needs a drone in the air, it is {start.state}: takeoff first")
        at = start.reference.pos
        shift = at if self.relative else np.zeros(4)
        pos, yaw = np.asarray(self.pos) + shift[:3], self.yaw + float(shift[3])
        limits.vector("position", pos, (3,), limits.POSITION)
        lowest = rules.rest_height + CLEARANCE
        note = f"go_to stays at {lowest:.2f} m, clear of the floor; " if pos[2] < lowest else ""
        goal = (pos[0], pos[1], max(pos[2], lowest))
        plan = _to_rest_at(start, rules, goal, replace(self, yaw=yaw))
        return replace(plan, note=note + plan.note)


@dataclass(frozen=True)
class FlyTrajectory(StateSetpoint):
    """Fly an uploaded trajectory, from the drone's present position or from its own start."""

    trajectory: PolynomialTrajectory
    timescale: float = 1.0
    reversed: bool = False
    relative: bool = True
    group_mask: int = 0

    def __post_init__(self) -> None:
        checked_timescale(self.timescale)
        check_group(self.group_mask)

    def plan(self, start: Start, rules: Rules) -> Plan:
        """Plan the pieces in order; the drone hovers at the end."""
        del rules  # the pieces are flown as they are
        if start.state.stands:
            raise ValueError(f"a trajectory needs a drone in the air, it is {start.state}")
        course = self.trajectory.course(
            start.reference,
            timescale=self.timescale,
            reversed=self.reversed,
            relative=self.relative,
        )
        away = float(np.linalg.norm(course.at(0.0).pos[:3] - start.reference.pos[:3]))
        if away > _MAX_JUMP:
            raise ValueError(
                f"the trajectory starts {away:.2f} m from the reference position, expected at "
                f"most {_MAX_JUMP:g} m: go_to its start first, or fly it relative"
            )
        return Plan(course, bounded=False)


def _check_high_level(duration: float, yaw: float, group_mask: int) -> None:
    if limits.number("duration", duration, _DURATION) < 0:
        raise ValueError(f"duration must not be negative, got {duration:g} s")
    if not isnan(yaw):
        limits.number("yaw", yaw, limits.ANGLE)
    check_group(group_mask)


def _to_rest_at(
    start: Start, rules: Rules, pos: ArrayLike, setpoint: Takeoff | Land | GoTo
) -> Plan:
    reference = start.reference
    yaw = float(reference.pos[3]) if isnan(setpoint.yaw) else setpoint.yaw
    course = to_rest_at(reference, pos, yaw, setpoint.duration, rules.envelope)
    note = ""
    if course.end > setpoint.duration > 0:
        note = f"takes {course.end:.2f} s instead of {setpoint.duration:g} s, the fastest allowed"
    return Plan(course, note=note)
