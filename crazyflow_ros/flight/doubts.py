"""Setpoints that a drone follows although its pilot probably meant something else.

A height in millimetres, a turn in degrees and a goal behind a wall are valid numbers. The drone
does what it is told, and its pilot is told what that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan, radians, remainder, tau

import numpy as np

from crazyflow_ros.flight.commander import Order
from crazyflow_ros.flight.course import Course
from crazyflow_ros.flight.high_level import FlyTrajectory, GoTo, Land, Spiral, Takeoff
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.flight.pose_and_velocity import Goal, Pose, Velocity
from crazyflow_ros.flight.setpoint import Setpoint
from crazyflow_ros.flight.streamed import AltitudeHold, Hover, Position, VelocityWorld
from crazyflow_ros.flight.surroundings import Surroundings
from crazyflow_ros.flight.trajectory import Trajectory

_BELOW = 0.05  # m below the floor; with less, pilots mean to land
_HIGH = 30.0  # m, which is unusual, unless the world is half as high
_DEGREES = 5.0  # people type angles in degrees as multiples of this, unlike those in rad
_MANY_TURNS = 10 * tau  # rad
_FAST_TURN = 2 * tau  # rad/s
_DETOUR = 0.5  # m by which a path may leave the box around the ends of its pieces
_COARSE = 20  # points of a path, to find its length
_SPACING = 0.01  # m on average between two points of a path, and twice that where it is fast
_MOST_POINTS = 2000
_LATE = 0.9  # of the pace of a moving goal, below which a drone falls behind
_TOO_FAST = "too fast"  # condition: its stream of poses is
_NAMED = 3  # obstacles in a message

_Turning = GoTo | Velocity | VelocityWorld | Hover | AltitudeHold
_TO_A_GOAL = (Pose, Goal, GoTo, Takeoff, Position, Spiral, Trajectory, FlyTrajectory)


def doubts(
    order: Order, rules: Rules, surroundings: Surroundings, reported: set[str]
) -> Iterator[str]:
    """Yield what is doubtful about a setpoint, as texts that follow the drone's name.

    Args:
        order: The setpoint, when it has just taken effect.
        rules: Limits of the drone.
        surroundings: The obstacles of the world.
        reported: See `Commander`; a stream that is too fast is told once.
    """
    setpoint, course = order.setpoint, order.plan.course
    yield from _about_height(setpoint, surroundings.top, rules.floor)
    yield from _about_pace(order.plan.pace, rules, reported)
    if isinstance(setpoint, _Turning):
        yield from _about_turn(setpoint, rules)
    if isinstance(setpoint, _TO_A_GOAL) and course is not None and not surroundings.is_empty:
        yield from _about_obstacles(course, surroundings)


def _about_pace(pace: float, rules: Rules, reported: set[str]) -> Iterator[str]:
    is_late = pace < _LATE
    if is_late and _TOO_FAST not in reported:
        bounds = rules.envelope
        yield (
            "its stream of positions moves faster than the drone may fly (flight.speed "
            f"{bounds.speed:.2g} m/s, flight.acceleration {bounds.acceleration:.2g} m/s^2 and the "
            "like): it follows late"
        )
    (reported.add if is_late else reported.discard)(_TOO_FAST)


def _about_height(setpoint: Setpoint, top: float, floor: float) -> Iterator[str]:
    height = lowest = nan
    if not getattr(setpoint, "relative", False):
        if isinstance(setpoint, Hover | AltitudeHold | Takeoff | Land):
            height, lowest = setpoint.height, 0.0
        elif isinstance(setpoint, Pose | Position | GoTo):
            height, lowest = float(np.asarray(setpoint.pos)[2]), floor
    if height < lowest - _BELOW:
        yield f"the height {height:g} m is below the floor, above which the drone stays"
    elif height > max(_HIGH, 2 * top):
        world = f", and nothing in this world is higher than {top:.1f} m" if top else ""
        yield f"the height {height:g} m is unusual: heights are in metres{world}"


def _about_turn(setpoint: _Turning, rules: Rules) -> Iterator[str]:
    if not isinstance(setpoint, GoTo):
        rate = setpoint.yaw_rate
        if _is_typed(rate) or abs(rate) > _FAST_TURN:
            yield (
                f"the yaw rate {rate:g} looks like degrees/s, which would be {radians(rate):.2f} "
                f"rad/s; it is taken as {rate:g} rad/s, and the drone turns at "
                f"{rules.envelope.yaw_rate:g} rad/s at most"
            )
    elif not isnan(yaw := setpoint.yaw) and (_is_typed(yaw) or abs(yaw) > _MANY_TURNS):
        yield (
            f"the yaw {yaw:g} looks like degrees, which would be {radians(yaw):.2f} rad; it is "
            f"taken as {yaw:g} rad, the same as {remainder(yaw, tau):.2f} rad"
        )


def _is_typed(angle: float) -> bool:
    """Return whether an angle is more than a turn [rad], and one that people type in degrees."""
    return abs(angle) > tau and remainder(angle, _DEGREES) == 0


def _about_obstacles(course: Course, surroundings: Surroundings) -> Iterator[str]:
    # Most setpoints end here: the corners of the box around the ends of all pieces.
    begins, is_piece = course.coefficients[:3, :, 0], np.isfinite(course.times[:3])
    low = begins.min(axis=1, initial=np.inf, where=is_piece)
    high = begins.max(axis=1, initial=-np.inf, where=is_piece)
    if not len(surroundings.near(np.stack((low, high)), _DETOUR)):
        return
    path = _path(course, _COARSE)
    length = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    path = _path(course, min(_COARSE + int(length / _SPACING), _MOST_POINTS))
    passages = surroundings.passed(path)
    if not passages:
        return
    goal = (np.round(path[-1], 2) + 0.0).tolist()  # no negative zeros
    if inside := [passage.name for passage in passages if passage.ends_inside]:
        yield f"the goal {goal} m lies inside {inside[0]}: drones do not avoid obstacles"
        return
    names = [passage.name for passage in passages]
    through = ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
    place = (np.round(path[passages[0].begin], 2) + 0.0).tolist()
    yield (
        f"the way to {goal} m leads through {through}, first at {place} m: "
        "drones do not avoid obstacles"
    )


def _path(course: Course, count: int) -> np.ndarray:
    """Return points (count, 3) of a course, from its start to its end."""
    points: np.ndarray = course.along(np.linspace(0.0, course.end, count))[0, :, :3]
    return points
