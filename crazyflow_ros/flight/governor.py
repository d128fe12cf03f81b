"""Turns setpoints of any size into courses that a drone can follow.

A state controller that is told a place far away flies there as fast as its gains and rotors allow:
fast and tilted, beyond its goal and back, and lower on the way, because saturated rotors give up
thrust for torque. The governor leads the drone to its target along a course of bounded speed,
acceleration and jerk, which takes a known time and from which the drone stays within centimetres.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, inf, pi, sin, sqrt

import numpy as np

from crazyflow_ros.flight.course import AXES, Course, Piece, Reference, evaluate, pieces_of
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.profile import (
    AxisState,
    Bounds,
    Profile,
    end_of,
    to_position,
    to_velocity,
)

_MIN_SHARE = 0.6  # of the bounds, for an axis that must stop although it is at its target
_KNOTS = 0.05  # s between the knots of a curve, which is polynomial in between
_CENTRIPETAL = 0.5  # share of the acceleration for the centripetal acceleration of a curve
_ALONG = 0.6  # share of the acceleration for changes of velocity in a curve
_FALLS = 1.3  # of the envelope's climb rate, beyond which a drone has to be caught
_HASTE = 3.0  # times the jerk, with which it is caught
_SAME = 1e-9  # m, rad and their derivatives, between two motions that are the same
_SLOW = 1e-3  # m/s, below which any turn rate is allowed


def to_pose(start: Reference, pos: Sequence[float], yaw: float, envelope: Envelope) -> Course:
    """Fly to a position from any motion, and take the shorter turn to a heading.

    Args:
        start: Present motion.
        pos: (3,) m, world frame.
        yaw: rad.
        envelope: Bounds. From rest, the path is a straight line.
    """
    axes = start.axes
    goals = [*map(float, pos), shortest_turn(axes[3].pos, yaw)]
    level, upright, turning = _bounds(envelope, axes[2])
    gaps = [goal - axis.pos for axis, goal in zip(axes, goals)]
    away, up, rise = hypot(*gaps[:2]), abs(gaps[2]), upright
    if all(axis.vel == 0 and axis.acc == 0 for axis in axes[:3]):
        # A straight line: the slowest axis sets the bounds of all.
        slope = up / away if away > 0 else inf
        along = Bounds(
            *(min(flat, steep / slope if slope else inf) for flat, steep in zip(level, upright))
        )
        rise = upright if away == 0 else along.scaled(slope) if slope else upright
        # An axis with a share of zero does not move.
        x, y = (abs(gap) / away or 1.0 if away > 0 else 1.0 for gap in gaps[:2])
    else:
        along = level
        ways = [goal - _stop(axis, level) for axis, goal in zip(axes[:2], goals)]
        x, y = _shares(ways, [axis.vel != 0 or axis.acc != 0 for axis in axes[:2]])
    bounds = along.scaled(x), along.scaled(y), rise, turning
    return Course.of_profiles(axes, map(to_position, axes, goals, bounds))


def at_velocity(
    start: Reference,
    vel: Sequence[float],
    yaw_rate: float,
    duration: float,
    envelope: Envelope,
    z: Profile | None = None,
    *,
    in_world: bool = False,
) -> Course:
    """Reach a velocity and a yaw rate, and keep them.

    Args:
        start: Present motion.
        vel: (3,) m/s in the heading frame: x ahead, y left, z up. It turns with the heading.
        yaw_rate: rad/s.
        duration: Duration of the course [s]; the drone still moves at its end.
        envelope: Bounds to which the velocities are reduced.
        z: Vertical motion that replaces the vertical velocity.
        in_world: The velocity is in the world frame, and does not turn.
    """
    ahead, left = _shortened(vel[:2], envelope.speed)
    fastest = envelope.yaw_rate
    if not in_world:  # a drone whose velocity turns with it must turn slowly when it is fast
        speed = max(hypot(ahead, left), float(np.hypot(*start.vel[:2])))
        fastest = min(fastest, _CENTRIPETAL * envelope.acceleration / max(speed, _SLOW))
    rate = min(max(-fastest, yaw_rate), fastest)
    *flat, height, yaw = start.axes
    level_bounds, upright, turning = _bounds(envelope, height)
    turn = to_velocity(yaw, rate, turning)
    if z is None:
        climb = min(max(-envelope.climb, vel[2]), envelope.climb)
        z = to_velocity(height, climb, upright)
    if not in_world and (rate or yaw.vel or yaw.acc):
        level = _curve(start, (ahead, left), turn, duration, level_bounds)
    else:
        c, s = (1.0, 0.0) if in_world else (cos(yaw.pos), sin(yaw.pos))
        goal = (c * ahead - s * left, s * ahead + c * left)
        profiles = _to_velocities(flat, goal, level_bounds)
        level = [_lasting(axis, profile, duration) for axis, profile in zip(flat, profiles)]
    pieces = [*level, _lasting(height, z, duration), _lasting(yaw, turn, duration)]
    last = [evaluate(_padded(p[-1][1]), np.array(p[-1][0]))[0] for p in pieces]
    return Course.of_pieces(pieces, [float(x) for x in last])


def onto(start: Reference, course: Course, envelope: Envelope, time: float = 0.0) -> Course:
    """Fly onto a course that begins elsewhere, or with another motion, than the reference.

    Args:
        start: Present reference.
        course: The course.
        envelope: Bounds of the motion relative to the course.
        time: Time of the course, now [s].

    Returns:
        The course, from that time on with a difference that fades away.
    """
    there = course.at(time)
    turn = shortest_turn(0.0, float(start.pos[3] - there.pos[3]))
    away = Reference(
        np.array([*(start.pos - there.pos)[:3], turn]), start.vel - there.vel, start.acc - there.acc
    )
    if max(float(np.abs(part).max()) for part in away) < _SAME:
        return course
    return course.plus(to_pose(away, (0.0, 0.0, 0.0), 0.0, envelope).delayed([time] * AXES))


def to_rest(start: Reference, envelope: Envelope) -> Course:
    """Come to rest as soon as the envelope allows."""
    axes = start.axes
    level, upright, turning = _bounds(envelope, axes[2])
    profiles = _to_velocities(axes[:2], (0.0, 0.0), level)
    profiles += [to_velocity(axes[2], 0.0, upright), to_velocity(axes[3], 0.0, turning)]
    return Course.of_profiles(axes, profiles)


def descent(start: Reference, height: float, speed: float, envelope: Envelope) -> Profile:
    """Return the vertical motion, down or up, to a height at a limited speed [m/s]."""
    z = start.axes[2]
    _, upright, _ = _bounds(envelope, z)
    return to_position(z, height, upright._replace(vel=min(abs(speed), envelope.climb)))


def shortest_turn(yaw: float, goal: float) -> float:
    """Return the angle nearest to `yaw` that has the direction of `goal` [rad]."""
    return yaw + (goal - yaw + pi) % (2 * pi) - pi


def _bounds(envelope: Envelope, z: AxisState) -> tuple[Bounds, Bounds, Bounds]:
    """Return the bounds of horizontal motion, of the vertical axis, and of turns."""
    lift, jerk = envelope.lift, envelope.jerk
    if not abs(z.vel) <= _FALLS * envelope.climb:
        lift, jerk = envelope.catch, _HASTE * jerk
    return (
        Bounds(envelope.speed, envelope.acceleration, envelope.jerk),
        Bounds(envelope.climb, lift, jerk),
        Bounds(envelope.yaw_rate, envelope.yaw_acceleration, envelope.yaw_jerk),
    )


def _stop(axis: AxisState, bounds: Bounds) -> float:
    """Return where an axis comes to rest if it brakes now."""
    return end_of(axis, to_velocity(axis, 0.0, bounds)).pos


def _shares(ways: Sequence[float], moves: Sequence[bool]) -> tuple[float, float]:
    """Return each axis' share of the horizontal bounds; their squares add up to at most 1."""
    whole = hypot(*ways)
    shares = [abs(way) / whole if whole > 0 else sqrt(0.5) for way in ways]
    for i in range(2):
        if shares[i] < _MIN_SHARE and (moves[i] or shares[i] == 0):
            shares[i] = _MIN_SHARE
            shares[1 - i] = min(shares[1 - i], sqrt(1 - _MIN_SHARE**2))
    return shares[0], shares[1]


def _to_velocities(
    axes: Sequence[AxisState], goal: Sequence[float], bounds: Bounds
) -> list[Profile]:
    """Reach a horizontal velocity [m/s] along two axes."""
    changes = [
        vel - (axis.vel + axis.acc * abs(axis.acc) / (2 * bounds.jerk))
        for axis, vel in zip(axes, goal)
    ]
    shares = _shares(changes, [axis.acc != 0 for axis in axes])
    return [
        to_velocity(axis, vel, bounds.scaled(share)) for axis, vel, share in zip(axes, goal, shares)
    ]


def _curve(
    start: Reference, vel: Sequence[float], turn: Profile, duration: float, bounds: Bounds
) -> list[list[Piece]]:
    """Return the horizontal pieces of a flight whose velocity turns with the heading.

    Between two knots the velocity is a cubic polynomial with the accelerations of the curve.
    """
    times = np.linspace(0.0, duration, 1 + max(1, round(duration / _KNOTS)))
    yaw, rate, _ = _sampled(start.axes[3], turn, times)
    c, s = np.cos(yaw), np.sin(yaw)
    (vx, vy, _, _), (ax, ay, _, _) = start.vel.tolist(), start.acc.tolist()
    # Velocity and acceleration in the heading frame.
    ahead, left = c[0] * vx + s[0] * vy, c[0] * vy - s[0] * vx
    ahead_acc = c[0] * ax + s[0] * ay + rate[0] * left
    left_acc = c[0] * ay - s[0] * ax - rate[0] * ahead
    states = AxisState(0.0, ahead, ahead_acc), AxisState(0.0, left, left_acc)
    profiles = _to_velocities(states, vel, bounds._replace(acc=_ALONG * bounds.acc))
    (_, u, du), (_, v, dv) = (_sampled(x, p, times) for x, p in zip(states, profiles))
    vels = c * u - s * v, s * u + c * v
    accs = (
        c * (du - rate * v) - s * (dv + rate * u),
        s * (du - rate * v) + c * (dv + rate * u),
    )
    return [
        _hermite(float(start.pos[i]), times, vel, acc)
        for i, (vel, acc) in enumerate(zip(vels, accs))
    ]


def _hermite(pos: float, times: np.ndarray, vel: np.ndarray, acc: np.ndarray) -> list[Piece]:
    """Integrate cubic velocities through knots with given accelerations to positions."""
    pieces: list[Piece] = []
    for k, h in enumerate(np.diff(times).tolist()):
        v0, v1, a0, a1 = vel[k], vel[k + 1], acc[k] * h, acc[k + 1] * h
        second, third = 3 * (v1 - v0) - 2 * a0 - a1, 2 * (v0 - v1) + a0 + a1
        pieces.append((h, (pos, v0, a0 / (2 * h), second / (3 * h**2), third / (4 * h**3))))
        pos += h * (v0 + a0 / 2 + second / 3 + third / 4)
    return pieces


def _sampled(start: AxisState, profile: Profile, times: np.ndarray) -> np.ndarray:
    """Return position, velocity and acceleration at given times, (3, n)."""
    pieces = _lasting(start, profile, float(times[-1]))
    begins = np.cumsum([0.0, *(duration for duration, _ in pieces[:-1])])
    row = np.searchsorted(begins, times, side="right") - 1
    coefficients = np.array([_padded(values) for _, values in pieces])
    return evaluate(coefficients[row], times - begins[row])[:3]


def _lasting(start: AxisState, profile: Profile, duration: float) -> list[Piece]:
    """Return the pieces of a profile, continued until a time at the final velocity."""
    pieces, end = pieces_of(start, profile)
    left = duration - sum(length for length, _ in pieces)
    return [*pieces, (max(left, 0.0), (end.pos, end.vel, 0.0))]


def _padded(values: Sequence[float]) -> np.ndarray:
    return np.pad(np.asarray(values, float), (0, 8 - len(values)))


def _shortened(vector: Sequence[float], length: float) -> tuple[float, float]:
    """Shorten a vector to at most a length."""
    x, y = map(float, vector)
    share = min(1.0, length / hypot(x, y)) if x or y else 1.0
    return x * share, y * share
