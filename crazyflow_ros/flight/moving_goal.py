"""Streams of poses: the motion of their goal, and a course that follows it with its velocity.

Poses that arrive shortly after one another describe a goal that moves. If each of them were a place
to stop at, the drone would chase the goal in jerks. Here the goal's motion is fitted to the latest
poses: position, velocity and acceleration, and the turn of the velocity, so that a circle is
continued as a circle. The course continues the present reference and meets the moving goal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import factorial, hypot
from typing import NamedTuple

import numpy as np

from crazyflow_ros.flight.course import AXES, ORDER, Course, Reference, evaluate, quintic
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.governor import shortest_turn, to_pose

_NS = 1e-9
_OLDEST = 0.7  # s, age of poses that belong to a stream
_SPACING = 0.02  # s between poses that are kept
MOST_POSES = 24
"""Length of a stream."""
_TOO_FAST = 1.5  # of the envelope's speed, between two poses: a step, not a motion
_PATIENCE = 3.0  # intervals without a pose, after which the goal has stopped
_LEAST_PATIENCE, _MOST_PATIENCE = 0.3, 1.0  # s

# The fit. Poses arrive some milliseconds early or late, which counts as an error of the place.
_TIMING, _PLACE = 0.015, 0.003  # s, m or rad
_UNKNOWN_JERK = 0.8  # m/s^3, of the goal, beside that of a turn
_LIKELY_VEL, _LIKELY_ACC = 20.0, 20.0  # m/s, m/s^2: what is not known from few poses is small
_ROUNDS = 3  # of fit and turn
_FASTEST_TURN = 3.0  # rad/s
_SLOW = 0.1  # m/s, below which the direction of the velocity says little
_STILL = 1e-3  # m/s or rad/s, below which a goal does not move

_HORIZONS = (0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # s until the drone meets the goal
_SAMPLES = np.linspace(0.0, 1.0, 9)
_SMOOTH = 0.5  # of the envelope's jerk: poses that are early or late make the drone sway
_MOST = 0.9  # of the envelope for the goal; the rest is for catching up
_FACTORIALS = np.array([factorial(k) for k in range(ORDER)], float)
LONGEST = 0.5
"""Shortest time [s] for which a course lasts without another pose."""
_LAST = 0.1  # s for which a course lasts beyond the time at which the goal counts as stopped


class TimedPose(NamedTuple):
    """A pose of a stream."""

    time_ns: int
    """Simulation time at which it took effect."""
    pos: tuple[float, float, float, float]
    """x, y, z [m, world frame] and yaw [rad]."""


Stream = tuple[TimedPose, ...]
"""The latest poses of a stream, in order of time."""


class GoalMotion(NamedTuple):
    """Motion of a goal: x, y, z and yaw, (4,) each."""

    pos: np.ndarray
    vel: np.ndarray
    acc: np.ndarray
    turn: float
    """Angular velocity of the velocity, rad/s."""

    def at_pace(self, share: float) -> GoalMotion:
        """Return the motion along the same path at a share of the pace."""
        return GoalMotion(self.pos, share * self.vel, share**2 * self.acc, share * self.turn)

    def arc(self) -> np.ndarray:
        """Return the motion at the same turn of the velocity as polynomials of time, (4, 8).

        They are Taylor's, exact to 1 % of the radius for a quarter of a turn and more.
        """
        square = np.array([self.turn**2] * 3 + [0.0])  # the heading does not take part in the turn
        found = [self.pos, self.vel, self.acc]
        while len(found) < ORDER:
            found.append(-square * found[-2])
        return np.column_stack(found) / _FACTORIALS


def extended(stream: Stream, new: TimedPose, envelope: Envelope) -> Stream:
    """Append a pose to a stream, or begin another stream with it.

    Args:
        stream: The stream so far; may be empty.
        new: The pose.
        envelope: Bounds of a drone: a goal that moves or turns much faster has made a step.
    """
    recent = [pose for pose in stream if (new.time_ns - pose.time_ns) * _NS <= _OLDEST]
    if not recent:
        return (new,)
    last = recent[-1]
    yaw = shortest_turn(last.pos[3], new.pos[3])
    new = new._replace(pos=(*new.pos[:3], yaw))
    way = float(np.linalg.norm(np.subtract(new.pos[:3], last.pos[:3])))
    turn, time = abs(yaw - last.pos[3]), max((new.time_ns - last.time_ns) * _NS, _SPACING)
    if max(way / envelope.speed, turn / envelope.yaw_rate) > _TOO_FAST * time:
        return (new,)
    before = recent[-2].time_ns * _NS + _SPACING if len(recent) > 1 else last.time_ns * _NS
    if new.time_ns * _NS <= before:
        recent.pop()
    return (*recent[1 - MOST_POSES :], new)


def patience(stream: Stream) -> float:
    """Return the time without another pose after which the goal has stopped [s]."""
    interval = (stream[-1].time_ns - stream[0].time_ns) * _NS / (len(stream) - 1)
    return min(max(_PATIENCE * interval, _LEAST_PATIENCE), _MOST_PATIENCE)


def motion_of(stream: Stream) -> GoalMotion:
    """Fit the motion of a goal at the time of its latest pose, of at least two."""
    times = np.array([(pose.time_ns - stream[-1].time_ns) * _NS for pose in stream])
    places = np.array([pose.pos for pose in stream])
    origin = places[-1]
    speed = float(np.linalg.norm(places[0, :3] - origin[:3])) / -times[0]
    error = (_PLACE + _TIMING * speed) ** 2 + (_UNKNOWN_JERK * times**3 / 6) ** 2
    terms = np.stack((np.ones_like(times), times, times**2 / 2))
    weighted = terms / error
    matrix = weighted @ terms.T + np.diag((0.0, _LIKELY_VEL**-2, _LIKELY_ACC**-2))
    if len(stream) == 2:  # which do not tell an acceleration
        matrix, weighted = matrix[:2, :2], weighted[:2]
    inverse, turn, jerk = np.linalg.inv(matrix), 0.0, np.zeros(AXES)
    for _ in range(_ROUNDS):
        fit = inverse @ (weighted @ (places - origin - np.outer(times**3 / 6, jerk)))
        vel, acc = fit[1], fit[2] if len(fit) > 2 else np.zeros(AXES)
        turn = _turn(vel[:3], acc[:3])
        jerk = -(turn**2) * vel * (1, 1, 1, 0)
    return GoalMotion(origin + fit[0], vel, acc, turn)


def _turn(vel: np.ndarray, acc: np.ndarray) -> float:
    """Return the angular velocity of a velocity [rad/s], 0 for a slow one."""
    (x, y, z), (u, v, w) = vel.tolist(), acc.tolist()
    square = x * x + y * y + z * z
    across = (y * w - z * v) ** 2 + (z * u - x * w) ** 2 + (x * v - y * u) ** 2
    clear = square / (square + _SLOW**2)
    return float(min(across**0.5 / max(square, _SLOW**2) * clear**2, _FASTEST_TURN))


class Following(NamedTuple):
    """How a drone follows a goal."""

    course: Course
    pace: float
    """Share of the goal's pace at which it flies, less than 1 if the goal is too fast for it."""


def follow(start: Reference, stream: Stream, envelope: Envelope) -> Following | None:
    """Plan a course that continues a reference and follows the goal of a stream.

    Args:
        start: Present reference.
        stream: The stream, of at least two poses; the last one arrives now.
        envelope: Bounds.

    Returns:
        The course, with the goal once it has met it, or behind a goal that is too fast; None if
        the goal does not move.
    """
    goal = motion_of(stream)
    nearest = shortest_turn(float(start.pos[3]), float(goal.pos[3]))
    goal = goal._replace(pos=np.array([*goal.pos[:3], nearest]))
    if float(np.abs(goal.vel).max()) < _STILL:
        return None
    if (pace := _pace(goal, envelope)) < 1:
        goal = goal.at_pace(pace)
    slower = _left(goal, envelope)
    arc = goal.arc()
    # In axes that move with the goal, the drone comes to rest there.
    away = np.array(start) - (goal.pos, goal.vel, goal.acc)
    approach = _approach(away, slower) or to_pose(Reference(*away), (0.0, 0.0, 0.0), 0.0, slower)
    lasts = max(patience(stream), LONGEST) + _LAST
    course = approach.plus(Course.of_polynomials([max(lasts, approach.end)], arc[None]))
    return Following(course, pace)


def _pace(goal: GoalMotion, envelope: Envelope) -> float:
    """Return the share of its pace at which a drone can follow a goal, 1 if at its own."""
    ratios = (
        (bound / value) ** (1 / order)
        for name, value, order in _wanted(goal)
        if value > (bound := _MOST * getattr(envelope, name))
    )
    return min(ratios, default=1.0)


def _approach(away: np.ndarray, envelope: Envelope) -> Course | None:
    """Return the smoothest way (3, 4) to rest at the origin; None if it is too far."""
    for horizon in _HORIZONS:
        piece = np.zeros((AXES, ORDER))
        piece[:, :6] = quintic(away, np.zeros((3, AXES)), horizon).T
        if _is_within(piece, horizon, envelope):
            return Course.of_polynomials([horizon], piece[None])
    return None


def _wanted(goal: GoalMotion) -> Iterator[tuple[str, float, int]]:
    """Yield a bound's name in the envelope, what a goal needs of it, and its order of time."""
    speed = hypot(*goal.vel[:2])
    yield "speed", speed, 1
    yield "climb", abs(float(goal.vel[2])), 1
    yield "yaw_rate", abs(float(goal.vel[3])), 1
    yield "acceleration", hypot(*goal.acc[:2]), 2
    yield "lift", abs(float(goal.acc[2])), 2
    yield "yaw_acceleration", abs(float(goal.acc[3])), 2
    yield "jerk", goal.turn**2 * speed, 3


def _left(goal: GoalMotion, envelope: Envelope) -> Envelope:
    """Return the bounds of motion relative to a goal at the drone's pace."""
    left = {name: getattr(envelope, name) - value for name, value, _ in _wanted(goal)}
    return replace(envelope, **left)


def _is_within(piece: np.ndarray, duration: float, envelope: Envelope) -> bool:
    """Return whether polynomials (4, 8) stay within an envelope."""
    times = np.broadcast_to(duration * _SAMPLES, (AXES, len(_SAMPLES)))
    _, vel, acc, jerk = evaluate(piece[:, None], times)
    return bool(
        np.hypot(vel[0], vel[1]).max() <= envelope.speed
        and np.abs(vel[2]).max() <= envelope.climb
        and np.abs(vel[3]).max() <= envelope.yaw_rate
        and np.hypot(acc[0], acc[1]).max() <= envelope.acceleration
        and np.abs(acc[2]).max() <= envelope.lift
        and np.abs(acc[3]).max() <= envelope.yaw_acceleration
        and np.sqrt((jerk[:3] ** 2).sum(axis=0)).max() <= _SMOOTH * envelope.jerk
        and np.abs(jerk[3]).max() <= envelope.yaw_jerk
    )
