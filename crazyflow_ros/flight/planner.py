"""The polynomials of the Crazyflie's high-level commander.

Segments of degree 7 with given position, velocity and acceleration at both ends, where the jerk is
zero. Written from the mathematics, with the semantics of the firmware's planner.
"""

from __future__ import annotations

from cmath import exp
from collections.abc import Callable, Sequence
from functools import partial
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.flight.course import AXES, ORDER, Course, Reference, evaluate
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.governor import shortest_turn, to_pose, to_rest

# (3, 8, 65) value and derivatives of each power along a segment, to find its maximum speed
_SAMPLES = evaluate(np.eye(ORDER)[:, None], np.linspace(0.0, 1.0, 65))[:3]
_ROUNDS = 8  # of lengthening a segment; from rest to rest one is enough
_LONGER = 1.001
_WORSE = 2.0  # times the least excess, from which on longer pieces are no better
_MIN_DURATION = 0.05  # s
_MOMENT = 0.4  # s, in which a drone reaches the velocity of a straight line, and stops
_SWING = 0.05  # m, by which a polynomial may go farther than its ends and the braking distance


def _segment_matrix() -> np.ndarray:
    """Return (8, 8) from values and three derivatives at times 0 and 1 to coefficients."""
    rows = np.zeros((8, ORDER))
    for derivative in range(4):
        factors = np.array([np.prod(np.arange(k, k - derivative, -1)) for k in range(ORDER)])
        rows[derivative, derivative] = factors[derivative]
        rows[4 + derivative] = np.where(np.arange(ORDER) >= derivative, factors, 0)
    return np.linalg.inv(rows)


_SEGMENT = np.round(_segment_matrix(), 9)  # multiples of 1/6


def segment(start: Reference, end: Reference, duration: float) -> np.ndarray:
    """Return the (4, 8) coefficients of a segment between two motions with a duration [s]."""
    zero = np.zeros(AXES)
    values = [
        *(start.pos, start.vel * duration, start.acc * duration**2, zero),
        *(end.pos, end.vel * duration, end.acc * duration**2, zero),
    ]
    return (_SEGMENT @ np.array(values)).T / duration ** np.arange(ORDER)


def to_rest_at(
    start: Reference, pos: ArrayLike, yaw: float, duration: float, envelope: Envelope
) -> Course:
    """Come to rest at a position after a time, or later if the envelope requires it.

    Args:
        start: Present motion.
        pos: (3,) m, world frame.
        yaw: rad; the drone takes the shorter turn.
        duration: s; 0 is as fast as the envelope allows.
        envelope: Bounds.

    Returns:
        The firmware's polynomial. A moving drone that would leave the envelope with it, or swing
        out, flies there as fast as it can, or brakes first if it has more time than that, unless
        its jerk is unbounded.
    """
    end = _end(start, pos, yaw)
    if all(np.array_equal(a, b) for a, b in zip(start, end)):
        return Course.of_pieces([[(duration, (x,))] for x in end.pos], end.pos.tolist())
    piece = partial(segment, start, end)
    if envelope.jerk == inf or not (start.vel.any() or start.acc.any()):
        return lengthened(piece, duration, envelope)
    braked = to_rest(start, envelope)
    there = braked.at(braked.end)
    if duration >= _MIN_DURATION:
        found = piece(duration)
        course = Course.of_polynomials([duration], found[None])
        box = np.stack((start.pos, end.pos, there.pos), axis=1)[:3]
        if _excess(found, duration, envelope) <= 1 and not swings_out(course, box):
            return course
    swift = to_pose(start, end.pos[:3].tolist(), yaw, envelope)
    if swift.end >= duration:
        return swift
    rest = Reference.at_rest(np.zeros(3), 0.0)
    onwards = partial(segment, rest, rest._replace(pos=end.pos - there.pos))
    after = lengthened(onwards, duration - braked.end, envelope)
    return braked.plus(after.delayed([braked.end] * AXES))


def straight_to(
    start: Reference, pos: ArrayLike, yaw: float, duration: float, envelope: Envelope
) -> Course:
    """Move to a position at a constant velocity, whatever the present one, and stop at once.

    Args:
        start: Present motion.
        pos: (3,) m, world frame.
        yaw: rad; the drone takes the shorter turn, at a constant rate.
        duration: s; longer if the envelope requires it.
        envelope: Bounds. The speed is one that the drone reaches, and stops from, in a moment.

    Returns:
        The line; within bounds, a drone that moves otherwise than along it brakes first.
    """
    most = _MOMENT * envelope.acceleration  # m/s
    bounds = envelope.slower(most)
    found = _line(start, _end(start, pos, yaw), duration, bounds)
    jump = found.at(0.0).vel - start.vel
    if float(np.linalg.norm(jump[:3])) <= most * _LONGER or not start.vel[:3].any():
        return found
    braked = to_rest(start, envelope)
    there = braked.at(braked.end)
    zero = Reference.at_rest(np.zeros(3), 0.0)
    away = zero._replace(pos=_end(there, pos, yaw).pos - there.pos)
    after = _line(zero, away, duration - braked.end, bounds)
    return braked.plus(after.delayed([braked.end] * AXES))


def _line(start: Reference, end: Reference, duration: float, envelope: Envelope) -> Course:
    way = end.pos - start.pos

    def piece(duration: float) -> np.ndarray:
        return np.column_stack((start.pos, way / duration, np.zeros((AXES, ORDER - 2))))

    return lengthened(piece, duration, envelope)


def spiral(
    start: Sequence[float],
    outward: complex,
    radii: tuple[float, float],
    turn: float,
    climb: float,
    duration: float,
) -> np.ndarray:
    """Return the (4, 8) coefficients of a segment whose ends are those of a spiral.

    Args:
        start: (4,) position [m, world frame] and yaw [rad] at the start.
        outward: Horizontal direction x + iy from the centre to the start.
        radii: Distances from the centre at start and end [m].
        turn: Angle around the centre, by which the drone yaws as well [rad].
        climb: m.
        duration: s.
    """
    x, y, z, yaw = start
    rate, growth, rise = turn / duration, (radii[1] - radii[0]) / duration, climb / duration
    centre = complex(x, y) - radii[0] * outward

    def motion(radius: float, angle: float, height: float) -> Reference:
        """Return position and its derivatives, in polar coordinates."""
        there = outward * exp(1j * angle)
        pos = centre + radius * there
        vel = (growth + 1j * rate * radius) * there
        acc = (2j * rate * growth - rate**2 * radius) * there
        return Reference(
            np.array([pos.real, pos.imag, height, yaw + angle]),
            np.array([vel.real, vel.imag, rise, rate]),
            np.array([acc.real, acc.imag, 0.0, 0.0]),
        )

    return segment(motion(radii[0], 0.0, z), motion(radii[1], turn, z + climb), duration)


def lengthened(piece: Callable[[float], np.ndarray], duration: float, envelope: Envelope) -> Course:
    """Return the course of a piece, as long as the envelope requires.

    If the motion at its ends allows no duration, the one that exceeds the envelope least is taken.

    Args:
        piece: Returns (4, 8) coefficients for a duration [s].
        duration: Minimum duration [s].
        envelope: Bounds of velocity and acceleration along the piece.
    """
    best, least = max(duration, _MIN_DURATION), inf
    duration = best
    for _ in range(_ROUNDS):
        ratio = _excess(piece(duration), duration, envelope)
        if ratio < least:
            best, least = duration, ratio
        if ratio <= 1 or ratio > _WORSE * least:  # a longer piece swings out even faster
            break
        duration *= ratio * _LONGER
    return Course.of_polynomials([best], piece(best)[None])


def swings_out(course: Course, points: np.ndarray) -> bool:
    """Return whether a course leaves the box around points, (3, n) m, by more than a little."""
    pos = course.along(np.linspace(0.0, course.end, _SAMPLES.shape[-1]))[0, :, :3]
    low, high = points.min(axis=1), points.max(axis=1)
    return bool(max((low - pos).max(), (pos - high).max()) > _SWING)


def check_world(durations: np.ndarray, pieces: np.ndarray) -> None:
    """Raise ValueError if polynomials leave the world or are faster than the physics can compute.

    Args:
        durations: (K,) s.
        pieces: (K, 4, 8) coefficients.
    """
    quantities = (
        ("positions", limits.POSITION),
        ("velocities", limits.VELOCITY),
        ("accelerations", limits.ACCELERATION),
    )
    for values, (name, limit) in zip(_sampled(pieces[:, :3], durations), quantities):
        limits.vector(name, values, values.shape, limit)


def _end(start: Reference, pos: ArrayLike, yaw: float) -> Reference:
    return Reference.at_rest(np.asarray(pos, float), shortest_turn(float(start.pos[3]), yaw))


def _sampled(pieces: np.ndarray, durations: ArrayLike) -> np.ndarray:
    """Return position, velocity and acceleration at equal intervals along polynomials.

    Args:
        pieces: (..., m, 8) coefficients of m axes.
        durations: (...) s.

    Returns:
        (3, ..., m, n).
    """
    scale = np.asarray(durations)[..., None, None]
    unit = pieces * scale ** np.arange(ORDER)  # of the time in units of the duration
    return np.stack([unit @ samples / scale**k for k, samples in enumerate(_SAMPLES)])


def _excess(piece: np.ndarray, duration: float, envelope: Envelope) -> float:
    """Return the factor by which to stretch polynomials in time to stay within an envelope."""
    _, vel, acc = _sampled(piece, duration)
    return max(
        float(np.hypot(vel[0], vel[1]).max()) / envelope.speed,
        float(np.abs(vel[2]).max()) / envelope.climb,
        float(np.abs(vel[3]).max()) / envelope.yaw_rate,
        float(np.hypot(acc[0], acc[1]).max() / envelope.acceleration) ** 0.5,
        float(np.abs(acc[2]).max() / envelope.lift) ** 0.5,
        float(np.abs(acc[3]).max() / envelope.yaw_acceleration) ** 0.5,
    )
